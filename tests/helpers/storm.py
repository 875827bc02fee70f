"""Random and mutated frames at a live node, from many connections and hosts."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from collections.abc import Callable
from functools import partial
from random import Random

from mutation import mutate
from protocol_targets import batch_seeds, request_seeds, with_length_and_crc

from penstock.protocol.apis import ApiKey

HOSTS = tuple(f"127.0.0.{number}" for number in range(2, 10)) if sys.platform == "linux" else ("127.0.0.1",)
"""Loopback has many addresses on Linux: as many peers."""
CONNECTIONS = 48
PATIENCE_S = 0.05
"""For an answer: a parked fetch has none, nor has a produce with acks=0, nor a frame that is not complete."""
FRAMES_PER_CONNECTION = 20
_SIZE = struct.Struct(">i")


class Frames:
    """Endless frames with their sizes; one seed, one sequence."""

    def __init__(self, source: Random, topic: str) -> None:
        self._source = source
        self._topic = topic.encode()
        self._requests = request_seeds()
        self._batches = batch_seeds()
        self._kinds: tuple[tuple[Callable[[], bytes], int], ...] = (
            (self._mutated_request, 40),
            (self._good_request, 5),
            (self._mutated_batch, 25),
            (self._mutated_fetch, 10),
            (self._random_body, 10),
            (self._noise, 5),
            (self._boast, 5),
        )

    def next(self) -> bytes:
        (make,) = self._source.choices([kind for kind, _ in self._kinds], [weight for _, weight in self._kinds])
        return make()

    def _mutated_request(self) -> bytes:
        return _framed(mutate(self._source.choice(self._requests), self._source))

    def _good_request(self) -> bytes:
        return _framed(self._source.choice(self._requests))

    def _mutated_batch(self) -> bytes:
        """A good Produce request with a batch that is not; its length and CRC are, half of the time."""
        batch = mutate(self._source.choice(self._batches), self._source)
        if self._source.random() < 0.5 and len(batch) > 61:
            batch = with_length_and_crc(batch)
        acks = self._source.choice((-1, 1, 1, 1, 0))
        return _framed(
            struct.pack(">hhih", ApiKey.PRODUCE, 7, 1, -1)
            + struct.pack(">hhii", -1, acks, 1000, 1)
            + struct.pack(">h", len(self._topic))
            + self._topic
            + struct.pack(">iii", 1, 0, len(batch))
            + batch
        )

    def _mutated_fetch(self) -> bytes:
        body = (
            struct.pack(">hhih", ApiKey.FETCH, 7, 1, -1)
            + struct.pack(">iiiibii", -1, 1, 1, 1 << 20, 0, 0, self._source.choice((-1, 0)))
            + struct.pack(">ih", 1, len(self._topic))
            + self._topic
            + struct.pack(">iiqqi", 1, 0, self._source.randrange(50), -1, 1 << 20)
            + struct.pack(">i", 0)
        )
        return _framed(mutate(body, self._source, start=14) if self._source.random() < 0.7 else body)

    def _random_body(self) -> bytes:
        key, version = self._source.choice(list(ApiKey)), self._source.randrange(14)
        body = struct.pack(">hhih", key, version, 1, -1) + self._source.randbytes(self._source.randrange(60))
        return _framed(body)

    def _noise(self) -> bytes:
        return self._source.randbytes(self._source.randrange(1, 200))

    def _boast(self) -> bytes:
        """A frame that announces what does not come."""
        size = self._source.choice((-1, 0, 7, 1 << 20, (100 << 20) - 1, 2**31 - 1))
        return _SIZE.pack(size) + self._source.choice(self._requests)[:60]


class _Attacker(asyncio.Protocol):
    """Sends a frame, waits for an answer or the end, and sends the next."""

    _transport: asyncio.Transport

    def __init__(self, frames: Frames, left: list[int], ended: asyncio.Event) -> None:
        self._frames = frames
        self._left = left
        self._ended = ended
        self._own_left = FRAMES_PER_CONNECTION
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:  # noqa: ARG002 - as the loop calls it
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as the loop calls it
        if self._timer is not None:
            self._timer.cancel()
        self._ended.set()

    def _send(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._left[0] <= 0 or self._own_left <= 0:
            self._transport.abort()
            return
        self._left[0] -= 1
        self._own_left -= 1
        self._transport.write(self._frames.next())
        self._timer = asyncio.get_running_loop().call_later(PATIENCE_S, self._transport.abort)


async def send_frames(host: str, port: int, frames: Frames, count: int) -> int:
    """Sends so many, from `CONNECTIONS` connections at a time; returns how many connections that took."""
    left = [count]
    made = 0
    loop = asyncio.get_running_loop()

    async def attack(number: int) -> None:
        nonlocal made
        local = None if len(HOSTS) == 1 else (HOSTS[number % len(HOSTS)], 0)
        while left[0] > 0:
            ended = asyncio.Event()
            made += 1
            await loop.create_connection(
                partial(_Attacker, frames, left, ended), host, port, family=socket.AF_INET, local_addr=local
            )
            await ended.wait()

    async with asyncio.TaskGroup() as tasks:
        for number in range(CONNECTIONS):
            tasks.create_task(attack(number))
    return made


def _framed(body: bytes) -> bytes:
    return _SIZE.pack(len(body)) + body
