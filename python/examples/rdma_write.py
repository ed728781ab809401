#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""rdma_write.py - writes into the peer's memory, and reads it.   rdma_write.py IA [HOST]   (without HOST it serves)"""
import sys

import dat

PORT, SIZE = 45124, 1 << 20


def serve(ia):
    """Offers memory, and shows what was written there."""
    memory = ia.memory(SIZE)
    message = ia.memory(16)
    with ia.listen(PORT) as listener, ia.endpoint() as ep:
        request = listener.wait()
        ep.post_recv(message.segment())
        request.accept(ep, private=bytes(memory.remote))    # where the peer may write
        length = ep.wait_recv()                             # it has written: a message comes after it
        print('written:', memory[:64].rstrip(b'\0').decode(), '-', message[:length].decode())
        memory[:5] = b'HELLO'
        ep.send(message.segment(0, 0))
        ep.wait_disconnect()


def write(ia, host):
    """Writes, reports it by a message, and reads what the peer made of it."""
    memory = ia.memory(SIZE)
    with ia.endpoint() as ep:
        ep.post_recv(memory.segment(0, 0))
        remote = dat.Remote.of(ep.connect(host, PORT)[:16])
        memory[:26] = b'hello from the other side!'
        ep.write(memory.segment(), remote)
        memory[:4] = b'done'
        ep.send(memory.segment(0, 4))
        ep.wait_recv()
        ep.read(memory.segment(0, 26), remote)
        print('read back:', memory[:26].decode())
        ep.disconnect()


with dat.Adapter(sys.argv[1]) as adapter:
    write(adapter, sys.argv[2]) if len(sys.argv) > 2 else serve(adapter)
