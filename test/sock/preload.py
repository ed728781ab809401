# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""preload.py - the environment of programs that run with libdatsock, for the tests of this directory. A library with
sanitizers needs their runtime before it."""
import os
import subprocess

LIBRARY = os.getcwd() + '/.libs/libdatsock.so.0'


def runtimes(library=LIBRARY):
    """What must be loaded before the library, as the beginning of LD_PRELOAD."""
    needed = subprocess.run(['ldd', library], stdout=subprocess.PIPE, check=True, text=True).stdout
    found = [line.split()[2] for line in needed.splitlines() if line.split()[0].startswith('libasan.so')]
    return ''.join(path + ':' for path in found)


def environment(library=LIBRARY, **settings):
    """The environment with the library, enabled, for all local connections, and with more settings."""
    env = {**os.environ, 'LD_PRELOAD': runtimes(library) + library, 'DATSOCK_ENABLED': '1', 'DATSOCK_IP_ADDR_LIST': 'local',
           'DATSOCK_PORT_RANGE_LIST': '1-65535', **settings}
    # Programs that are run here are not ours, and leave memory at their ends.
    env['ASAN_OPTIONS'] = env.get('ASAN_OPTIONS', '') + ':detect_leaks=0'
    return env
