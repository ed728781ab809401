# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""uDAPL for Python: adapters, registered memory, endpoints, RDMA.

A thin layer over libdat2 by ctypes. Calls that wait release the interpreter's lock. An object belongs to the adapter
that made it, and ends with it; each is a context manager, too. Failures are exceptions: Error for a call, Failure for a
connection or an operation that failed later. Times are in seconds.

    with dat.Adapter('ofa-v2-soft') as ia, ia.endpoint() as ep:
        memory = ia.memory(4096)
        ep.connect('127.0.0.1', 45000)
        memory[:5] = b'hello'
        ep.send(memory.segment(0, 5))
"""
from __future__ import annotations

import ctypes
import socket
import struct
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_uint32, c_uint64, c_void_p
from typing import NamedTuple, Optional

__all__ = ['Adapter', 'Memory', 'Segment', 'Remote', 'Endpoint', 'Listener', 'Request', 'Error', 'Failure', 'Timeout']

_lib = ctypes.CDLL('libdat2.so.2', use_errno=True)

# --- constants and structures of <dat/udat.h>; python/check compares them with the headers ------------------------

CONSTANTS = {
    'DAT_VERSION_MAJOR': 2, 'DAT_VERSION_MINOR': 0,
    'DAT_EVD_CR_FLAG': 0x10, 'DAT_EVD_DTO_FLAG': 0x20, 'DAT_EVD_CONNECTION_FLAG': 0x40,
    'DAT_MEM_TYPE_VIRTUAL': 0, 'DAT_MEM_PRIV_ALL_FLAG': 0x33, 'DAT_VA_TYPE_VA': 0,
    'DAT_CLOSE_ABRUPT_FLAG': 0, 'DAT_CLOSE_GRACEFUL_FLAG': 1, 'DAT_PSP_CONSUMER_FLAG': 0,
    'DAT_TIMEOUT_EXPIRED': 0xf0000, 'DAT_TIMEOUT_INFINITE': 0xffffffff,
    'DAT_DTO_COMPLETION_EVENT': 0x1, 'DAT_CONNECTION_REQUEST_EVENT': 0x2001,
    'DAT_CONNECTION_EVENT_ESTABLISHED': 0x4001, 'DAT_CONNECTION_EVENT_PEER_REJECTED': 0x4002,
    'DAT_CONNECTION_EVENT_NON_PEER_REJECTED': 0x4003, 'DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR': 0x4004,
    'DAT_CONNECTION_EVENT_DISCONNECTED': 0x4005, 'DAT_CONNECTION_EVENT_BROKEN': 0x4006,
    'DAT_CONNECTION_EVENT_TIMED_OUT': 0x4007, 'DAT_CONNECTION_EVENT_UNREACHABLE': 0x4008,
    'DAT_DTO_ERR_FLUSHED': 1, 'DAT_DTO_ERR_LOCAL_LENGTH': 2, 'DAT_DTO_ERR_LOCAL_EP': 3, 'DAT_DTO_ERR_LOCAL_PROTECTION': 4,
    'DAT_DTO_ERR_BAD_RESPONSE': 5, 'DAT_DTO_ERR_REMOTE_ACCESS': 6, 'DAT_DTO_ERR_REMOTE_RESPONDER': 7,
    'DAT_DTO_ERR_TRANSPORT': 8, 'DAT_DTO_ERR_RECEIVER_NOT_READY': 9, 'DAT_DTO_ERR_PARTIAL_PACKET': 10,
    'DAT_DTO_ERR_LOCAL_MM_ERROR': 12,
    'DAT_DIAG_LAST_ERROR_OP': 0x480, 'DAT_DIAG_TEXT_MAX': 512,
}
_C = type('Constants', (), CONSTANTS)
_NAMES = {value: name[4:] for name, value in CONSTANTS.items() if '_EVENT' in name}
_STATUSES = {value: name[8:] for name, value in CONSTANTS.items() if name.startswith('DAT_DTO_ERR_')}


class Triplet(ctypes.Structure):
    """DAT_LMR_TRIPLET and DAT_RMR_TRIPLET."""
    _fields_ = [('virtual_address', c_uint64), ('segment_length', c_uint32), ('context', c_uint32)]


class Region(ctypes.Structure):
    """DAT_REGION_DESCRIPTION: a union in C, whose longest member is two pointers."""
    _fields_ = [('for_va', c_void_p), ('shared_memory_id', c_void_p)]


class DtoData(ctypes.Structure):
    """DAT_DTO_COMPLETION_EVENT_DATA."""
    _fields_ = [('ep_handle', c_void_p), ('user_cookie', c_uint64), ('status', c_int), ('transfered_length', c_uint32),
                ('operation', c_int), ('rmr_context', c_uint32)]


class CrData(ctypes.Structure):
    """DAT_CR_ARRIVAL_EVENT_DATA."""
    _fields_ = [('sp_handle', c_void_p), ('local_ia_address_ptr', c_void_p), ('conn_qual', c_uint64),
                ('cr_handle', c_void_p), ('truncate_flag', c_int)]


class ConnectData(ctypes.Structure):
    """DAT_CONNECTION_EVENT_DATA."""
    _fields_ = [('ep_handle', c_void_p), ('private_data_size', c_int), ('private_data', c_void_p)]


class EventData(ctypes.Union):
    """DAT_EVENT_DATA, as far as it is used here."""
    _fields_ = [('dto', DtoData), ('cr', CrData), ('connect', ConnectData)]


class Event(ctypes.Structure):
    """DAT_EVENT."""
    _fields_ = [('event_number', c_int), ('evd_handle', c_void_p), ('event_data', EventData),
                ('event_extension_data', c_uint64 * 8)]


class LastError(ctypes.Structure):
    """DAT_LAST_ERROR of <dat/dat_diag_extensions.h>."""
    _fields_ = [('event', c_int), ('step', c_int), ('error', c_int), ('code_kind', c_int), ('code', c_uint32),
                ('elapsed', c_uint64), ('local', c_uint64 * 16), ('remote', c_uint64 * 16),
                ('text', c_char * CONSTANTS['DAT_DIAG_TEXT_MAX'])]


_HANDLE = POINTER(c_void_p)
_PROTOTYPES = {
    'dat_ia_openv': (c_char_p, c_int, _HANDLE, _HANDLE, c_uint32, c_uint32, c_int),
    'dat_ia_close': (c_void_p, c_int),
    'dat_pz_create': (c_void_p, _HANDLE),
    'dat_lmr_create': (c_void_p, c_int, Region, c_uint64, c_void_p, c_int, c_int, _HANDLE, POINTER(c_uint32),
                       POINTER(c_uint32), POINTER(c_uint64), POINTER(c_uint64)),
    'dat_lmr_free': (c_void_p,),
    'dat_evd_create': (c_void_p, c_int, c_void_p, c_int, _HANDLE),
    'dat_evd_wait': (c_void_p, c_uint32, c_int, POINTER(Event), POINTER(c_int)),
    'dat_evd_free': (c_void_p,),
    'dat_ep_create': (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, _HANDLE),
    'dat_ep_connect': (c_void_p, c_void_p, c_uint64, c_uint32, c_int, c_char_p, c_int, c_int),
    'dat_ep_disconnect': (c_void_p, c_int),
    'dat_ep_free': (c_void_p,),
    'dat_ep_post_send': (c_void_p, c_int, POINTER(Triplet), c_uint64, c_int),
    'dat_ep_post_recv': (c_void_p, c_int, POINTER(Triplet), c_uint64, c_int),
    'dat_ep_post_rdma_write': (c_void_p, c_int, POINTER(Triplet), c_uint64, POINTER(Triplet), c_int),
    'dat_ep_post_rdma_read': (c_void_p, c_int, POINTER(Triplet), c_uint64, POINTER(Triplet), c_int),
    'dat_psp_create': (c_void_p, c_uint64, c_void_p, c_int, _HANDLE),
    'dat_psp_free': (c_void_p,),
    'dat_cr_accept': (c_void_p, c_void_p, c_int, c_char_p),
    'dat_cr_reject': (c_void_p, c_int, c_char_p),
    'dat_strerror': (c_uint32, POINTER(c_char_p), POINTER(c_char_p)),
}
for _name, _types in _PROTOTYPES.items():
    getattr(_lib, _name).argtypes = _types
    getattr(_lib, _name).restype = c_uint32


# --- errors -------------------------------------------------------------------------------------------------------

class Error(Exception):
    """A call failed: `call` is its name, `value` its DAT_RETURN."""

    def __init__(self, call: str, value: int):
        major, minor = c_char_p(), c_char_p()
        _lib.dat_strerror(value, byref(major), byref(minor))
        texts = [text.value.decode() for text in (major, minor) if text.value]
        super().__init__(f'{call}: {", ".join(texts)}')
        self.call, self.value = call, value


class Failure(Exception):
    """A connection was not established or broke, or an operation failed: `event` or `status` is its name."""

    def __init__(self, what: str, reason: str):
        super().__init__(f'{what}: {reason}' if reason else what)
        self.event = self.status = what


class Timeout(Exception):
    """Nothing happened in time."""


def _call(name: str, *arguments: object) -> None:
    value = getattr(_lib, name)(*arguments)
    if value:
        raise Error(name, value)


def _microseconds(timeout: Optional[float]) -> int:
    return _C.DAT_TIMEOUT_INFINITE if timeout is None else min(int(timeout * 1e6), _C.DAT_TIMEOUT_INFINITE - 1)


def _wait(evd: c_void_p, timeout: Optional[float]) -> Event:
    """The next event. A signal whose handler returns does not end the wait of an infinite time."""
    event, more = Event(), c_int()
    value = _lib.dat_evd_wait(evd, _microseconds(timeout), 1, byref(event), byref(more))
    if value & 0x3fff0000 == _C.DAT_TIMEOUT_EXPIRED:
        raise Timeout(f'no event within {timeout} s')
    if value:
        raise Error('dat_evd_wait', value)
    return event


# --- memory -------------------------------------------------------------------------------------------------------

class Segment(NamedTuple):
    """A part of registered memory, for an operation."""
    address: int
    length: int
    context: int


class Remote(NamedTuple):
    """A peer's memory. It is sent as 16 bytes in network order: bytes(remote), Remote.of(data)."""
    address: int
    length: int
    context: int

    def __bytes__(self) -> bytes:
        return struct.pack('!QII', *self)

    @classmethod
    def of(cls, data: bytes) -> Remote:
        """The memory that the 16 bytes name."""
        return cls(*struct.unpack('!QII', data))


class Memory:
    """Registered memory, which peers may read and write. Indices and slices are those of a bytearray of fixed size."""

    def __init__(self, adapter: Adapter, size: int):
        self.size = size
        self._buffer = (c_char * size)()
        self.view = memoryview(self._buffer).cast('B')
        self._lmr, local, remote = c_void_p(), c_uint32(), c_uint32()
        length, address = c_uint64(), c_uint64()
        _call('dat_lmr_create', adapter.handle, _C.DAT_MEM_TYPE_VIRTUAL, Region(ctypes.addressof(self._buffer)), size,
              adapter.pz, _C.DAT_MEM_PRIV_ALL_FLAG, _C.DAT_VA_TYPE_VA, byref(self._lmr), byref(local), byref(remote),
              byref(length), byref(address))
        self._context, self.remote = local.value, Remote(ctypes.addressof(self._buffer), size, remote.value)

    def segment(self, start: int = 0, length: Optional[int] = None) -> Segment:
        """`length` bytes from `start` on; without a length all of the rest."""
        length = self.size - start if length is None else length
        if start < 0 or length < 0 or start + length > self.size:
            raise ValueError(f'{length} bytes at {start} are not within {self.size}')
        return Segment(self.remote.address + start, length, self._context)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, key):
        return bytes(self.view[key]) if isinstance(key, slice) else self.view[key]

    def __setitem__(self, key, value) -> None:
        self.view[key] = value

    def close(self) -> None:
        """Ends the registration."""
        if self._lmr:
            lmr, self._lmr = self._lmr, c_void_p()
            _call('dat_lmr_free', lmr)


# --- connections ----------------------------------------------------------------------------------------------------

def _address(host: str, kind: int = socket.AF_UNSPEC) -> ctypes.Array:
    """A sockaddr for dat_ep_connect()."""
    family, _, _, _, where = socket.getaddrinfo(host, None, kind, socket.SOCK_STREAM)[0]
    packed = socket.inet_pton(family, where[0])
    if family == socket.AF_INET:
        data = struct.pack('=HH4s8x', family, 0, packed)
    else:
        data = struct.pack('=HHI16sI', family, 0, 0, packed, where[3])
    return ctypes.create_string_buffer(data, 128)


class Endpoint:
    """One end of a connection. The calls send, recv, write and read wait for their completion."""

    def __init__(self, adapter: Adapter, depth: int):
        self._evds = [adapter.make_evd(depth, _C.DAT_EVD_DTO_FLAG), adapter.make_evd(depth, _C.DAT_EVD_DTO_FLAG),
                      adapter.make_evd(8, _C.DAT_EVD_CONNECTION_FLAG)]
        self._recv, self._request, self._connect = self._evds
        self.handle = c_void_p()
        _call('dat_ep_create', adapter.handle, adapter.pz, *self._evds, None, byref(self.handle))

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _why(self) -> str:
        """What the library knows about the failure of the connection."""
        error = LastError()
        extension = _lib.dat_extension_op
        extension.restype = c_uint32
        if extension(self.handle, c_int(_C.DAT_DIAG_LAST_ERROR_OP), byref(error), c_int(ctypes.sizeof(error))):
            return ''
        return error.text.decode(errors='replace')

    def wait_event(self, timeout: Optional[float] = None) -> bytes:
        """Waits until the connection is established. Returns the peer's private data."""
        event = _wait(self._connect, timeout)
        if event.event_number != _C.DAT_CONNECTION_EVENT_ESTABLISHED:
            raise Failure(_NAMES.get(event.event_number, hex(event.event_number)), self._why())
        data = event.event_data.connect
        return ctypes.string_at(data.private_data, data.private_data_size) if data.private_data_size else b''

    def connect(self, host: str, port: int, private: bytes = b'', timeout: Optional[float] = 10) -> bytes:
        """Connects, and returns the peer's private data."""
        _call('dat_ep_connect', self.handle, _address(host), port, _microseconds(timeout), len(private), private, 0, 0)
        return self.wait_event()

    def _complete(self, evd: c_void_p, timeout: Optional[float]) -> int:
        done = _wait(evd, timeout).event_data.dto
        if done.status:
            raise Failure(_STATUSES.get(done.status, str(done.status)), self._why())
        return done.transfered_length

    @staticmethod
    def _triplet(where: tuple) -> Triplet:
        return Triplet(*where)

    def post_recv(self, segment: Segment) -> None:
        """Posts a buffer for a message: before the peer sends it, so before connect() or accept() for the first."""
        _call('dat_ep_post_recv', self.handle, 1, byref(self._triplet(segment)), 0, 0)

    def wait_recv(self, timeout: Optional[float] = None) -> int:
        """Waits for the next message in a posted buffer. Returns its length."""
        return self._complete(self._recv, timeout)

    def send(self, segment: Segment, timeout: Optional[float] = None) -> None:
        """Sends a message."""
        _call('dat_ep_post_send', self.handle, 1, byref(self._triplet(segment)), 0, 0)
        self._complete(self._request, timeout)

    def write(self, segment: Segment, remote: Remote, offset: int = 0, timeout: Optional[float] = None) -> None:
        """Writes the segment into the peer's memory."""
        self._rdma('dat_ep_post_rdma_write', segment, remote, offset, timeout)

    def read(self, segment: Segment, remote: Remote, offset: int = 0, timeout: Optional[float] = None) -> None:
        """Reads the peer's memory into the segment."""
        self._rdma('dat_ep_post_rdma_read', segment, remote, offset, timeout)

    def _rdma(self, call: str, segment: Segment, remote: Remote, offset: int, timeout: Optional[float]) -> None:
        if offset < 0 or offset + segment.length > remote.length:
            raise ValueError(f'{segment.length} bytes at {offset} are not within {remote.length}')
        there = Triplet(remote.address + offset, segment.length, remote.context)
        _call(call, self.handle, 1, byref(self._triplet(segment)), 0, byref(there), 0)
        self._complete(self._request, timeout)

    def disconnect(self, timeout: Optional[float] = 10) -> None:
        """Ends the connection after the operations that were posted."""
        _call('dat_ep_disconnect', self.handle, _C.DAT_CLOSE_GRACEFUL_FLAG)
        self.wait_disconnect(timeout)

    def wait_disconnect(self, timeout: Optional[float] = None) -> None:
        """Waits until the connection has ended."""
        event = _wait(self._connect, timeout)
        if event.event_number != _C.DAT_CONNECTION_EVENT_DISCONNECTED:
            raise Failure(_NAMES.get(event.event_number, hex(event.event_number)), self._why())

    def close(self) -> None:
        """Frees the endpoint; ends its connection."""
        if self.handle:
            handle, self.handle = self.handle, c_void_p()
            _call('dat_ep_free', handle)
            for evd in self._evds:
                _call('dat_evd_free', evd)


class Request:
    """A connection request of a peer, to be accepted or rejected once."""

    def __init__(self, handle: int):
        self._handle = handle

    def accept(self, endpoint: Endpoint, private: bytes = b'', timeout: Optional[float] = 10) -> Endpoint:
        """Makes the connection with this endpoint, which has posted its first receives."""
        _call('dat_cr_accept', self._handle, endpoint.handle, len(private), private)
        endpoint.wait_event(timeout)
        return endpoint

    def reject(self, private: bytes = b'') -> None:
        """Refuses it."""
        _call('dat_cr_reject', self._handle, len(private), private)


class Listener:
    """A service point: a port where peers connect."""

    def __init__(self, adapter: Adapter, port: int):
        self._evd = adapter.make_evd(64, _C.DAT_EVD_CR_FLAG)
        self._psp = c_void_p()
        _call('dat_psp_create', adapter.handle, port, self._evd, _C.DAT_PSP_CONSUMER_FLAG, byref(self._psp))

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait(self, timeout: Optional[float] = None) -> Request:
        """Waits for the next connection request."""
        return Request(_wait(self._evd, timeout).event_data.cr.cr_handle)

    def close(self) -> None:
        """Peers cannot connect any more."""
        if self._psp:
            psp, self._psp = self._psp, c_void_p()
            _call('dat_psp_free', psp)
            _call('dat_evd_free', self._evd)


class Adapter:
    """An open interface adapter: a name of dat.conf. Threads use it one at a time, unless the entry says threadsafe and
    it is opened so."""

    def __init__(self, name: str, threadsafe: bool = False):
        self.name = name
        self.handle, self.pz, asynchronous = c_void_p(), c_void_p(), c_void_p()
        _call('dat_ia_openv', name.encode(), 8, byref(asynchronous), byref(self.handle), _C.DAT_VERSION_MAJOR,
              _C.DAT_VERSION_MINOR, int(threadsafe))
        _call('dat_pz_create', self.handle, byref(self.pz))

    def __enter__(self) -> Adapter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def make_evd(self, depth: int, flags: int) -> c_void_p:
        """An event dispatcher; for the classes of this module."""
        evd = c_void_p()
        _call('dat_evd_create', self.handle, depth, None, flags, byref(evd))
        return evd

    def memory(self, size: int) -> Memory:
        """Registers `size` new bytes, which are zero."""
        return Memory(self, size)

    def endpoint(self, depth: int = 64) -> Endpoint:
        """An endpoint for `depth` operations of each kind at a time."""
        return Endpoint(self, depth)

    def listen(self, port: int) -> Listener:
        """Lets peers connect to the port."""
        return Listener(self, port)

    def close(self) -> None:
        """Closes it, and ends all that it made."""
        if self.handle:
            handle, self.handle = self.handle, c_void_p()
            _call('dat_ia_close', handle, _C.DAT_CLOSE_ABRUPT_FLAG)
