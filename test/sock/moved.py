# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""moved.py - what tests share that make calls on a moved connection whose ends are both in one process, and run each case
on plain TCP, too."""
import ctypes
import os
import socket
import subprocess
import sys
import time

import preload


class Info(ctypes.Structure):
    _fields_ = [('size', ctypes.c_uint32), ('into', ctypes.c_uint8), ('out', ctypes.c_uint8),
                ('why', ctypes.c_uint16), ('rest', ctypes.c_char * 256)]


def has_moved(sock):
    info = Info(size=ctypes.sizeof(Info))
    ctypes.CDLL(preload.LIBRARY).dat_socket_info(sock.fileno(), ctypes.byref(info))
    return info.into and info.out


def connected():
    """Two ends of a connection; with the library it has moved."""
    with socket.create_server(('127.0.0.1', 0)) as listener:
        one = socket.create_connection(listener.getsockname())
        other = listener.accept()[0]
    one.settimeout(5)
    other.settimeout(5)
    for _ in range(2000):
        for a, b in ((one, other), (other, one)):
            a.send(b'x')
            b.recv(1)
        if 'LD_PRELOAD' not in os.environ or has_moved(one) and has_moved(other):
            one.setblocking(False)
            other.setblocking(False)
            return one, other
        time.sleep(0.001)
    raise RuntimeError('the connection does not move')


def expect(got, wanted, what):
    if got != wanted:
        raise AssertionError(f'{what}: {got}, not {wanted}')


def refused(call, *arguments):
    try:
        call(*arguments)
    except OSError as e:
        return e.errno
    return 0


def main(cases):
    """Runs the case that the command line names, or each one on TCP and with the library. Returns the exit status."""
    if len(sys.argv) > 1:
        {case.__name__: case for case in cases}[sys.argv[1]]()
        return 0
    failed = 0
    for case in cases:
        for env in (None, preload.environment(DATSOCK_AFTER='0')):
            try:
                done = subprocess.run([sys.executable, sys.argv[0], case.__name__], env=env, timeout=60, check=False)
                good = not done.returncode
            except subprocess.TimeoutExpired:
                good = False
            if not good:
                failed += 1
                print(f'{case.__name__} fails {"with libdatsock" if env else "on TCP"}')
    print(f'{2 * len(cases) - failed} passed, {failed} failed')
    return failed > 0
