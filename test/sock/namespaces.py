# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""namespaces - what tests of libdatsock between hosts share: network namespaces joined by veth pairs, a control group of
the test's own with the programs of `datsock enable --network`, and a box between two namespaces that changes segments.
Nothing of the machine changes but for the directory of the control group, which end() removes."""
import ctypes
import os
import platform
import select
import signal
import socket
import struct
import subprocess
import sys
import threading

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWNET, MS_PRIVATE_REC = 0x20000, 0x40000000, 0x44000
SYS_BPF = {'x86_64': 321, 'i686': 357}.get(platform.machine(), 280)
MAP_LOOKUP, MAP_NEXT_KEY, PROG_LOAD, OBJ_GET, PROG_ATTACH = 1, 4, 5, 7, 8
MAP_NEXT_ID, MAP_BY_ID, INFO_BY_FD, PROG_QUERY = 12, 14, 15, 16
LEVEL, OPTION = 0xDA75, 1
TOOL = os.path.join(os.getcwd(), 'datsock')


class Skip(Exception):
    """The machine lacks what the test needs."""


def checked(result, what):
    if result < 0:
        err = ctypes.get_errno()
        raise OSError(err, f'{what}: {os.strerror(err)}')
    return result


def bpf(command, attr):
    """attr: bytes, or a buffer."""
    size = ctypes.sizeof(attr)
    return checked(LIBC.syscall(SYS_BPF, command, ctypes.byref(attr), size), f'bpf({command})')


def buffer(fmt, *values):
    """The attributes of bpf(2); the kernel wants zeros behind those that it knows."""
    return ctypes.create_string_buffer(struct.pack(fmt, *values), 128)


def address(of):
    return ctypes.addressof(of)


def ip(*args):
    subprocess.run(['ip', *args], check=True, timeout=20, capture_output=True)


class Namespace:
    """A network namespace, held by a process."""

    def __init__(self):
        # pylint: disable=consider-using-with
        self.holder = subprocess.Popen(['unshare', '--net', 'sh', '-c', 'ip link set lo up; echo; exec sleep 100000'],
                                       stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        self.fd = os.open(f'/proc/{self.holder.pid}/ns/net', os.O_RDONLY)
        self.pid = str(self.holder.pid)

    def __enter__(self):
        """This thread is in the namespace; what it makes there stays there."""
        checked(LIBC.setns(self.fd, CLONE_NEWNET), 'setns')
        return self

    def __exit__(self, *_):
        checked(LIBC.setns(HOME, CLONE_NEWNET), 'setns')

    def ip(self, *args):
        with self:
            ip(*args)

    def sysctl(self, name, value):
        with self, open('/proc/sys/net/' + name, 'w', encoding='ascii') as file:
            file.write(value)

    def end(self):
        os.close(self.fd)
        self.holder.kill()
        self.holder.wait()


HOME = -1


def join(a, name_a, b, name_b, mtu=1500):
    """A veth pair between two namespaces."""
    ip('link', 'add', name_a, 'netns', a.pid, 'mtu', str(mtu), 'type', 'veth', 'peer', 'name', name_b, 'netns', b.pid,
       'mtu', str(mtu))
    for space, name in ((a, name_a), (b, name_b)):
        with space, open(f'/proc/sys/net/ipv6/conf/{name}/accept_dad', 'w', encoding='ascii') as file:
            file.write('0')
        space.ip('link', 'set', name, 'up')


class Place:
    """The mounts and the control group of this process."""

    def __init__(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))   # with what "finally" has to do
        global HOME  # pylint: disable=global-statement
        if os.geteuid():
            raise Skip('needs root')
        checked(LIBC.unshare(CLONE_NEWNS | CLONE_NEWNET), 'unshare')
        checked(LIBC.mount(b'none', b'/', None, MS_PRIVATE_REC, None), 'mount')
        HOME = os.open('/proc/thread-self/ns/net', os.O_RDONLY)
        if LIBC.mount(b'bpf', b'/sys/fs/bpf', b'bpf', 0, None):
            raise Skip('no file system of type bpf')
        with open('/proc/mounts', encoding='utf-8') as mounts:
            roots = [line.split()[1] for line in mounts if line.split()[2] == 'cgroup2']
        if not roots:
            raise Skip('no control groups of version 2')
        with open('/proc/self/cgroup', encoding='ascii') as file:
            before = next((line[3:].strip() for line in file if line.startswith('0::')), '/')
        self.before = roots[0] + before
        self.cgroup = f'{roots[0]}/datsock-test-{os.getpid()}'
        os.mkdir(self.cgroup)
        self.enter(self.cgroup)

    @staticmethod
    def enter(cgroup):
        with open(cgroup + '/cgroup.procs', 'w', encoding='ascii') as file:
            file.write(str(os.getpid()))

    def enable(self):
        done = subprocess.run([TOOL, 'enable', '--network', '--cgroup', self.cgroup], capture_output=True, text=True,
                              timeout=60, check=False)
        if done.returncode and 'Operation not permitted' in done.stderr:
            raise Skip(done.stderr.strip())
        assert not done.returncode and not done.stderr, done
        return bpf(OBJ_GET, buffer('QI', address(self.path(b'sockets')), 0))

    @staticmethod
    def path(name, kept=[]):  # pylint: disable=dangerous-default-value
        kept.append(ctypes.create_string_buffer(b'/sys/fs/bpf/datsock/' + name))
        return kept[-1]

    @staticmethod
    def disable():
        subprocess.run([TOOL, 'disable', '--network'], check=True, timeout=60)

    def end(self):
        self.enter(self.before)
        os.rmdir(self.cgroup)


# --- the maps of the programs ---------------------------------------------------------------------------------

MARKED, CONNECTOR, AWARE, OWN_FLAG = 1, 2, 4, 8


def look_up(table, key, size):
    value = ctypes.create_string_buffer(size)
    key = ctypes.create_string_buffer(key, max(len(key), 1))
    bpf(MAP_LOOKUP, buffer('IIQQQ', table, 0, address(key), address(value), 0))
    return value.raw


def state(table, sock):
    """(own token, peer's token, flags) of a socket; None if it was not marked."""
    try:
        return struct.unpack_from('QQII', look_up(table, struct.pack('i', sock.fileno()), 64))[:3]
    except FileNotFoundError:
        return None


def keys():
    """The keys for SYNs and for SYN-ACKs of the newest map of that name."""
    number, found = 0, None
    while True:
        attr = buffer('III', number, 0, 0)
        try:
            bpf(MAP_NEXT_ID, attr)
        except FileNotFoundError:
            break
        number = struct.unpack_from('I', attr, 4)[0]
        fd = bpf(MAP_BY_ID, buffer('III', number, 0, 0))
        info = ctypes.create_string_buffer(256)
        bpf(INFO_BY_FD, buffer('IIQ', fd, 256, address(info)))
        if info.raw[24:40].rstrip(b'\0') == b'datsock_keys':
            found = look_up(fd, struct.pack('I', 0), 32)
        os.close(fd)
    return found and (found[:16], found[16:])


def sip_hash(key, data):
    """SipHash-2-4, as its authors define it."""
    mask = (1 << 64) - 1
    k = struct.unpack('<QQ', key)
    v = [k[0] ^ 0x736f6d6570736575, k[1] ^ 0x646f72616e646f6d, k[0] ^ 0x6c7967656e657261, k[1] ^ 0x7465646279746573]

    def rotate(x, n):
        return (x << n | x >> (64 - n)) & mask

    def one_round():
        v[0] = (v[0] + v[1]) & mask
        v[1] = rotate(v[1], 13) ^ v[0]
        v[0] = rotate(v[0], 32)
        v[2] = (v[2] + v[3]) & mask
        v[3] = rotate(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & mask
        v[3] = rotate(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & mask
        v[1] = rotate(v[1], 17) ^ v[2]
        v[2] = rotate(v[2], 32)

    tail = data[len(data) & ~7:]
    words = struct.unpack(f'<{len(data) // 8}Q', data[:len(data) & ~7])
    for m in (*words, int.from_bytes(tail, 'little') | (len(data) & 255) << 56):
        v[3] ^= m
        one_round()
        one_round()
        v[0] ^= m
    v[2] ^= 0xff
    for _ in range(4):
        one_round()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


# --- a box that changes segments --------------------------------------------------------------------------------

def checksum(data):
    if len(data) & 1:
        data += b'\0'
    total = sum(struct.unpack(f'>{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


class Segment:
    """A TCP segment in an Ethernet frame with IPv4."""

    def __init__(self, frame):
        self.head, self.tcp = bytearray(frame[:34]), bytearray(frame[34:14 + struct.unpack_from('>H', frame, 16)[0]])
        self.flags = self.tcp[13]

    @staticmethod
    def parse(frame):
        plain = len(frame) >= 54 and frame[12:14] == b'\x08\0' and frame[14] == 0x45 and frame[23] == 6
        return Segment(frame) if plain else None

    @property
    def options(self):
        return bytes(self.tcp[20:(self.tcp[12] >> 4) * 4])

    @options.setter
    def options(self, new):
        assert len(new) % 4 == 0 and len(new) <= 40
        rest = self.tcp[(self.tcp[12] >> 4) * 4:]
        self.tcp = self.tcp[:20] + new + rest
        self.tcp[12] = (5 + len(new) // 4) << 4

    def frame(self):
        struct.pack_into('>H', self.head, 16, 20 + len(self.tcp))
        self.head[24:26] = b'\0\0'
        struct.pack_into('>H', self.head, 24, checksum(bytes(self.head[14:34])))
        self.tcp[16:18] = b'\0\0'
        pseudo = bytes(self.head[26:34]) + struct.pack('>HH', 6, len(self.tcp))
        struct.pack_into('>H', self.tcp, 16, checksum(pseudo + bytes(self.tcp)))
        return bytes(self.head + self.tcp)


def find_option(options, kind=254):
    """The first option of that kind, with its place; None."""
    at = 0
    while at < len(options) and options[at]:
        if options[at] == 1:
            at += 1
            continue
        length = options[at + 1] if at + 1 < len(options) else 0
        if length < 2:
            return None
        if options[at] == kind:
            return at, options[at:at + length]
        at += length
    return None


class Box(threading.Thread):
    """Forwards frames between two interfaces of a namespace. change(segment, outward) may change TCP segments of IPv4,
    and returns whether they go on."""

    def __init__(self, space, inner, outer):
        super().__init__(daemon=True)
        self.change = lambda segment, outward: True
        with space:
            self.sockets = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) for _ in range(2)]
            for s, name in zip(self.sockets, (inner, outer)):
                s.bind((name, 0))
        self.stop, self.stopped = os.pipe()
        self.start()

    def run(self):
        while True:
            for ready in select.select([*self.sockets, self.stop], [], [])[0]:
                if ready == self.stop:
                    return
                frame, source = ready.recvfrom(65536)
                if source[2] == socket.PACKET_OUTGOING:
                    continue
                segment = Segment.parse(frame)
                if segment:
                    if not self.change(segment, ready is self.sockets[0]):
                        continue
                    frame = segment.frame()
                self.sockets[ready is self.sockets[0]].send(frame)

    def end(self):
        os.write(self.stopped, b'x')
        self.join()
