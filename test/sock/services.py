# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""services.py - what tests of connections between hosts share: two network namespaces, each with a datsockd on the
software device, and a process that asks one."""
import os
import resource
import signal
import socket
import struct
import subprocess
import tempfile
import time
import traceback

import namespaces
from namespaces import LEVEL, OPTION

WAIT = 60   # seconds; machines may be slow
MAGIC, VERSION = 0x44535632, 1
EXPECT, HERE, ASK, FORGET = 1, 2, 3, 4
OK, NO_SOCKET, NOT_AWARE, NO_ADAPTER, BUSY, LATER, NO_PEER = range(7)


def until(condition, what):
    limit = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < limit, what
        time.sleep(0.01)


class Answer:
    def __init__(self, raw):
        fields = struct.unpack('=IHHII16s16sQ256s', raw)
        assert fields[:2] == (MAGIC, VERSION), fields
        self.type, self.id, self.result, self.key, peer, self.qualifier, ia = fields[2:]
        self.peer = socket.inet_ntop(socket.AF_INET6, peer).replace('::ffff:', '')
        self.ia = ia.split(b'\0')[0].decode()


class Service:
    """datsockd in a namespace."""

    def __init__(self, directory, space, place, *options, links=('direct',)):
        self.directory, self.space, self.place, self.options = directory, space, place, options
        self.adapters = ['soft', *(f'soft-{link}' for link in links[1:])]
        self.address = space.address
        os.makedirs(directory + '/run', exist_ok=True)
        os.chmod(directory, 0o755)
        self.path = directory + '/run/datsock/datsockd'
        with open(directory + '/dat.conf', 'w', encoding='ascii') as conf:
            for name, link in zip(self.adapters, links):
                conf.write(f'{name} u2.0 threadsafe default {os.getcwd()}/.libs/libdaplsoft.so.2 dapl.2.0 '
                           f'"{link} 0" ""\n')
        self.start()

    def start(self, *more):
        env = {**os.environ, 'DAT_TEST_ROOT': self.directory, 'DAT_OVERRIDE': self.directory + '/dat.conf',
               'DAPL_TRACE_LEVEL': '0'}
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen(['nsenter', f'--net=/proc/{self.space.pid}/ns/net',
                                         os.getcwd() + '/datsockd', *(f'-D{name}' for name in self.adapters),
                                         '--cgroup', self.place.cgroup, *self.options, *more], env=env)
        until(lambda: self.is_listening() or self.process.poll() is not None, 'datsockd does not start')
        assert self.process.poll() is None, self.process.returncode

    def is_listening(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            return s.connect_ex(self.path) == 0 and self.listens_on_ia()

    def listens_on_ia(self):
        with self.space, socket.socket() as s:
            return s.connect_ex((self.address, 4797)) == 0

    def stop(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        status = self.process.wait(WAIT)
        assert sig == signal.SIGKILL or status == 0, status


class Client:
    """A process that asks."""

    def __init__(self, service):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(service.path)
        self.socket.settimeout(WAIT)

    def send(self, kind, number=1, qualifier=0, fds=()):
        data = struct.pack('=IHHIIQ', MAGIC, VERSION, kind, number, 0, qualifier)
        self.raw(data, fds)

    def raw(self, data, fds=()):
        fds = [f if isinstance(f, int) else f.fileno() for f in fds]
        socket.send_fds(self.socket, [data], fds) if fds else self.socket.send(data)

    def receive(self):
        return Answer(self.socket.recv(1000))

    def ask(self, kind, sock, number=1):
        self.send(kind, number, 0, [sock] if sock else [])
        answer = self.receive()
        assert (answer.type, answer.id) == (kind, number), vars(answer)
        return answer

    def here(self, sock, qualifier, number=1):
        answer = self.ask(EXPECT, sock, number)
        assert answer.result == OK, vars(answer)
        self.send(HERE, number, qualifier)
        return answer

    def is_closed(self):
        try:
            return self.socket.recv(1000) == b''
        except ConnectionResetError:
            return True

    def close(self):
        self.socket.close()


def asked(client, sock, wanted=OK):
    """Asks until the answer is another one than LATER: the other service hears of HERE at its own time."""
    limit = time.monotonic() + WAIT
    while True:
        answer = client.ask(ASK, sock)
        if answer.result != LATER or wanted == LATER or time.monotonic() > limit:
            assert answer.result == wanted, (answer.result, wanted)
            return answer
        time.sleep(0.01)


class World:
    """`links` beside the first one, which the connections use, have an adapter at each end, too. A link without adapters
    has the networks 10.78.9.0 and fd79::."""

    def __init__(self, place, directory, links=('direct',)):
        self.place = place
        self.a, self.b = namespaces.Namespace(), namespaces.Namespace()
        namespaces.join(self.a, 'direct', self.b, 'direct')
        for space, host in ((self.a, 1), (self.b, 2)):
            space.address = f'10.78.1.{host}'
            space.ip('addr', 'add', space.address + '/24', 'dev', 'direct')
            space.ip('addr', 'add', f'10.78.2.{host}/24', 'dev', 'direct')
            space.ip('addr', 'add', f'fd78::{host}/64', 'dev', 'direct')
        for number, link in enumerate(links[1:]):
            namespaces.join(self.a, link, self.b, link)
            for space, host in ((self.a, 1), (self.b, 2)):
                space.ip('addr', 'add', f'10.78.{number + 3}.{host}/24', 'dev', link)
        namespaces.join(self.a, 'plain', self.b, 'plain')
        for space, host in ((self.a, 1), (self.b, 2)):
            space.ip('addr', 'add', f'10.78.9.{host}/24', 'dev', 'plain')
            space.ip('addr', 'add', f'fd79::{host}/64', 'dev', 'plain')
        self.table = place.enable()
        self.at_a = Service(directory + '/a', self.a, place, links=links)
        self.at_b = Service(directory + '/b', self.b, place, links=links)

    def listen(self, at=None, marked=True):
        at = at or self.b.address
        with self.b:
            sock = socket.socket(socket.AF_INET6 if ':' in at else socket.AF_INET)
        sock.settimeout(WAIT)
        if marked:
            sock.setsockopt(LEVEL, OPTION, b'\1\0\0\0')
        sock.bind((at, 0))
        sock.listen(1000)
        return sock

    def connect(self, listener, marked=True):
        with self.a:
            sock = socket.socket(listener.family)
        sock.settimeout(WAIT)
        if marked:
            sock.setsockopt(LEVEL, OPTION, b'\1\0\0\0')
        sock.connect(listener.getsockname())
        return sock

    def pair(self, at=None, client=True, server=True):
        with self.listen(at, server) as listener:
            return self.connect(listener, client), listener.accept()[0]

    def end(self):
        for service in (self.at_a, self.at_b):
            service.stop()
        for space in (self.a, self.b):
            space.end()
        self.place.disable()


def close(*sockets):
    for one in sockets:
        one.close()


def run(world, cases, wanted):
    passed = failed = 0
    for case in cases:
        if wanted and case.__name__ not in wanted:
            continue
        try:
            case(world)
            print('ok      ', case.__name__, flush=True)
            passed += 1
        except Exception:  # pylint: disable=broad-except
            print('FAILED  ', case.__name__, flush=True)
            traceback.print_exc()
            failed += 1
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


def main(cases, wanted, links=('direct',)):
    """Runs the cases of these names, or all. Returns the exit status."""
    place = world = None
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        try:
            place = namespaces.Place()
            world = World(place, directory, links)
            return run(world, cases, wanted)
        except namespaces.Skip as why:
            print('skip:', why)
            return 77
        finally:
            if world:
                world.end()
            if place:
                place.end()
