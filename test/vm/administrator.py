#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""administrator - datctl and datinfo with the RDMA devices of a kernel: devices made and removed, the programs
that use them, what listens on them. For test/vm/suites.d/administrator, in the machine and in the
top of a build tree."""
import contextlib
import json
import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + '/../tools')
from tool import BUILD, OFA, Skip, check, has, main, same, test  # noqa: E402

RXE, SIW = os.environ['VM_RXE_DEV'], os.environ['VM_SIW_DEV']


def on_kernel(place, *entries):
    """The tools see the machine's devices, not files of the test."""
    place.environment['DAT_TEST_ROOT'] = None
    place.entries(*entries)


def wait_for(condition, what):
    end = time.monotonic() + 60
    while not (result := condition()):
        check(time.monotonic() < end, f'{what}: not within 60 s')
        time.sleep(0.2)
    return result


def devices():
    return set(os.listdir('/sys/class/infiniband'))


@contextlib.contextmanager
def running(place, *command, **variables):
    """A program that is ended afterwards."""
    with subprocess.Popen(command, env=dict(os.environ, DAT_OVERRIDE=place.conf, **variables),
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)


def listens(place, pid):
    return [port for port in place.json('datinfo', '--ports') if port.get('pid') == pid]


@contextlib.contextmanager
def network(name):
    """An interface that no device has yet."""
    for command in f'link add {name} type veth peer name {name}p', f'link set {name} up', f'link set {name}p up':
        subprocess.run(['ip', *command.split()], check=True)
    try:
        yield name
    finally:
        subprocess.run(['ip', 'link', 'del', name], check=True)


# --- devices -------------------------------------------------------------------------------------

def made_used_and_removed(place, kind):
    on_kernel(place)
    with network('adm0') as interface:
        device = f'{kind}_{interface}'
        same(place.run('datctl', '-l', f'{kind}:{interface}').stdout, device + '\n')
        check(device in devices(), f'{device} is not there')
        row, = [d for d in place.json('datinfo', '--devices')['devices'] if d['name'] == device]
        check(interface in json.dumps(row), f'{interface} is not in {row}')
        same(place.run('datctl', '-l', f'{kind}:{interface}', status=1).stderr,
             f'datctl: there is a device {device} already\n')
        place.run('datctl', '-u', device)
        check(device not in devices(), f'{device} is still there')
        same(place.run('datctl', '-u', device, status=1).stderr,
             f'datctl: there is no RDMA device {device} (datinfo --devices)\n')


@test
def rxe_is_made_and_removed(place):
    made_used_and_removed(place, 'rxe')


@test
def siw_is_made_and_removed(place):
    if os.environ['VM_SIW'] != 'yes':
        raise Skip('no siw here')
    made_used_and_removed(place, 'siw')


@test
def used_device_is_not_removed(place):
    """By a program with an IA, and by one that has nothing to do with DAT."""
    on_kernel(place, ('rxe', OFA, f'{RXE} 1'))
    with running(place, BUILD + '/.libs/datperf', '-D', 'rxe', '-p', '45290') as process:
        wait_for(lambda: listens(place, process.pid), 'the server listens')
        same(place.run('datctl', '-u', RXE, status=1).stderr,
             f'datctl: {RXE} is used by process {process.pid} (datperf) as IA rxe\n')
    with running(place, 'ibv_rc_pingpong', '-d', RXE, '-g', '1') as process:
        error = wait_for(lambda: [e for e in [place.run('datctl', '-u', RXE, status=1).stderr] if 'QP' in e],
                         'the program has a QP')[0]
        same(error, f'datctl: {RXE} is used by process {process.pid} (ibv_rc_pingpong), which has a QP\n')
    check(RXE in devices(), f'{RXE} was removed')


# --- views -----------------------------------------------------------------------------------------

def device_of(place, name):
    device, = place.json('datinfo', '--stat', name)['devices']
    return device


def resources(kind, where):
    """What iproute2 tells of the kernel's objects, as JSON text."""
    return subprocess.run(['rdma', '-j', 'resource', 'show', kind, *where.split()], capture_output=True, text=True,
                          check=True).stdout


@test
def endpoints_are_joined_with_the_qps_of_the_kernel(place):
    on_kernel(place, ('rxe', OFA, f'{RXE} 1'))
    with running(place, BUILD + '/.libs/datperf', '-D', 'rxe', '-p', '45290') as process:
        wait_for(lambda: listens(place, process.pid), 'the server listens')
        with running(place, BUILD + '/.libs/datperf', '-D', 'rxe', '-s', os.environ['VM_RXE_IP4'], '-p', '45290',
                     '-T', 'send-lat', '-t', '60') as client:
            users = wait_for(lambda: [u for u in device_of(place, RXE)['users']
                                      if u['pid'] == client.pid and u.get('state') == 'connected'], 'it is connected')
            same(len(users), 1, 'endpoints of the client')
            device = device_of(place, RXE)
            check(f'"lqpn":{users[0]["qp"]},' in resources('qp', f'link {RXE}/1'), 'the QP is not that of the kernel')
            same(sum(u.get('qp') == users[0]['qp'] for u in device['users']), 1, 'rows of a QP')
            holders = {h['pid']: h for h in device['objects']}
            same(set(holders), {process.pid, client.pid}, str(holders))     # not datinfo itself
            mine = holders[client.pid]
            same(mine['program'], 'datperf')
            check(mine['contexts'] > 0, 'contexts')
            threads = os.listdir(f'/proc/{client.pid}/task')    # an object belongs to the thread that made it
            for kind in 'pds', 'mrs', 'cqs', 'qps':
                where = f'link {RXE}/1' if kind == 'qps' else f'dev {RXE}'
                made = re.findall(r'"pid":(\d+)', resources(kind[:-1], where))
                same(mine[kind], sum(pid in threads for pid in made), kind)
            has(place.run('datinfo', '--stat', RXE).stdout, '    Objects in the kernel:\n')


@test
def program_of_verbs_is_a_user(place):
    on_kernel(place)
    with running(place, 'ibv_rc_pingpong', '-d', RXE, '-g', '1') as process:
        user = wait_for(lambda: [u for u in device_of(place, RXE)['users'] if u['pid'] == process.pid],
                        'its QP is shown')[0]
        same((user['program'], user['type'], user['state']), ('ibv_rc_pingpong', 'RC', 'INIT'))
    same(device_of(place, RXE)['users'], [])


def listeners_of(place, ia, device, kind):
    on_kernel(place, (ia, OFA, f'{device} 1'))
    with running(place, BUILD + '/.libs/datperf', '-D', ia, '-p', '45290') as process, \
            running(place, 'rping', '-s', '-a', os.environ[f'VM_{kind}_IP4'], '-p', '7174') as rping:
        wait_for(lambda: listens(place, process.pid) and listens(place, rping.pid), 'both listen')
        ports = [p for p in place.json('datinfo', '--ports') if p['port'] in (7174, 45290)]
        same([(p['port'], p['pid'], p['program'], p['device'], p['services'], p.get('ia'), p['address'])
              for p in ports],
             [(7174, rping.pid, 'rping', device, ['RC'], None, os.environ[f'VM_{kind}_IP4']),
              (45290, process.pid, 'datperf', device, ports[-1]['services'], ia, os.environ[f'VM_{kind}_IP4'])])
        has(ports[-1]['services'], 'RC')


@test
def listeners_of_rxe_are_shown_once(place):
    listeners_of(place, 'rxe', RXE, 'RXE')


@test
def listeners_of_siw_and_their_sockets_are_shown_once(place):
    if os.environ['VM_SIW'] != 'yes':
        raise Skip('no siw here')
    listeners_of(place, 'siw', SIW, 'SIW')


main()
