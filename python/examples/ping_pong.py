#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""ping_pong.py - a message goes back and forth.   ping_pong.py IA [HOST]   (without HOST it serves)"""
import sys
import time

import dat

PORT, ROUNDS, SIZE = 45123, 1000, 64


def serve(ia):
    """Sends each message back."""
    memory = ia.memory(SIZE)
    with ia.listen(PORT) as listener, ia.endpoint() as ep:
        request = listener.wait()
        ep.post_recv(memory.segment())
        request.accept(ep)
        for round_ in range(ROUNDS):
            length = ep.wait_recv()
            if round_ + 1 < ROUNDS:
                ep.post_recv(memory.segment())
            ep.send(memory.segment(0, length))
        ep.wait_disconnect()


def ping(ia, host):
    """Measures the time of a round."""
    memory = ia.memory(2 * SIZE)
    with ia.endpoint() as ep:
        ep.post_recv(memory.segment(SIZE))
        ep.connect(host, PORT)
        begin = time.perf_counter()
        for round_ in range(ROUNDS):
            memory[:4] = round_.to_bytes(4, 'big')
            ep.send(memory.segment(0, SIZE))
            ep.wait_recv()
            assert memory[SIZE:SIZE + 4] == memory[:4]
            if round_ + 1 < ROUNDS:
                ep.post_recv(memory.segment(SIZE))
        print(f'{(time.perf_counter() - begin) / ROUNDS * 1e6:.1f} us a round')
        ep.disconnect()


with dat.Adapter(sys.argv[1]) as adapter:
    ping(adapter, sys.argv[2]) if len(sys.argv) > 2 else serve(adapter)
