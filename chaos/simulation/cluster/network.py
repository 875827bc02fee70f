"""A network of streams between machines in memory: it delays, cuts in one direction or both, and breaks connections.

What is under way on a cut link arrives when that is healed, as TCP repeats it; so does what is sent to a machine that
has no power, whose answer is then that it knows of no connection. A process that ends on a machine that goes on has its
connections closed by it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from errno import EADDRINUSE, ECONNREFUSED, ETIMEDOUT
from itertools import count
from random import Random
from typing import Any

from .process import KERNEL, Process
from .transport import Address, Item, StreamServer, StreamTransport

_DELAY_MIN_S = 0.00005
# From one machine room to distant ones: what arrives first is open for longer.
_DELAYS_MAX_S = (0.0008, 0.0008, 0.005, 0.02)
# How long after a link is healed until a kernel tries again.
_REPEAT_MAX_S = 0.2
# What Linux waits between attempts to connect, doubled each time.
_FIRST_ATTEMPT_S = 1.0
_CONNECT_ATTEMPTS = 7
# One of so many reads gives only a part of what is there.
_TORN_READS = 16
_FIRST_PORT = 32768


class Network:
    """All machines and what is between them. `slow` adds to the delay of a direction, in seconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop, random: Random, trace: Callable[[str], None]) -> None:
        self.loop = loop
        self.slow: dict[tuple[str, str], float] = {}
        self.hold_up: Callable[[StreamTransport, bytes], float] | None = None
        """By how many seconds data of a connection arrive later, and all that comes after them with them."""
        self.connection_count = 0
        self.bytes_sent = 0
        self._random = random
        self._delay_max_s = random.choice(_DELAYS_MAX_S)
        self._trace = trace
        self._cut: set[tuple[str, str]] = set()
        self._dark: set[str] = set()
        self._servers: dict[Address, StreamServer] = {}
        # In the order in which they were made.
        self._ends: dict[StreamTransport, None] = {}
        # Those whose wire waits for a link, likewise.
        self._stalled: dict[StreamTransport, None] = {}
        self._ports = count(_FIRST_PORT)

    # What goes wrong.

    @property
    def cuts(self) -> list[tuple[str, str]]:
        return sorted(self._cut)

    def cut(self, source: str, target: str) -> None:
        """Nothing gets through in this direction."""
        self._cut.add((source, target))

    def heal(self, source: str, target: str) -> None:
        self._cut.discard((source, target))
        self._repeat()

    def darken(self, host: str) -> None:
        """The machine has no power."""
        self._dark.add(host)

    def light(self, host: str) -> None:
        self._dark.discard(host)
        self._repeat()

    def end_process(self, process: Process, *, is_told: bool) -> None:
        """Its machine closes its connections (`is_told`), or loses its power in the same instant."""
        if not is_told:
            for end in self._stalled:
                if end.process is process:
                    end.wire.clear()
        for address in [address for address, server in self._servers.items() if server.process is process]:
            del self._servers[address]
        for end in [end for end in self._ends if end.process is process]:
            end.die(is_told=is_told)

    def break_connections(self, a: str, b: str) -> int:
        """Reset all connections between two machines; returns how many there were."""
        found = [end for end in self._ends if {end.process.host, end.peer[0]} == {a, b}]
        for end in found:
            end.reset()
        return len(found) // 2

    # What processes do.

    def bind(self, process: Process, factory: Any, host: str, port: int) -> StreamServer:
        address = (host, port)
        assert host == process.host, f"{process} binds the address of another machine: {host}"
        if address in self._servers:
            raise OSError(EADDRINUSE, f"{host}:{port} is in use")
        server = self._servers[address] = StreamServer(self, process, factory, address)
        return server

    def unbind(self, server: StreamServer) -> None:
        if self._servers.get(server.address) is server:
            del self._servers[server.address]

    async def connect(
        self, process: Process, factory: Any, host: str, port: int
    ) -> tuple[StreamTransport, asyncio.BaseProtocol]:
        pause_s = _FIRST_ATTEMPT_S
        for _ in range(_CONNECT_ATTEMPTS):
            await asyncio.sleep(self._delay_s(process.host, host) + self._delay_s(host, process.host))
            if self._is_open(process.host, host) and self._is_open(host, process.host):
                server = self._servers.get((host, port))
                if server is None or not server.is_accepting:
                    raise ConnectionRefusedError(ECONNREFUSED, f"Connect call failed ('{host}', {port})")
                return self._accept(process, factory, server)
            await asyncio.sleep(pause_s)
            pause_s *= 2
        raise TimeoutError(ETIMEDOUT, f"Connect call failed ('{host}', {port})")

    def _accept(
        self, process: Process, factory: Any, server: StreamServer
    ) -> tuple[StreamTransport, asyncio.BaseProtocol]:
        self.connection_count += 1
        own = (process.host, next(self._ports))
        near = StreamTransport(self, process, own, server.address)
        far = StreamTransport(self, server.process, server.address, own)
        near.peer_end, far.peer_end = far, near
        self._ends[near] = self._ends[far] = None
        self._trace(f"connect {process} {server.process}:{server.address[1]}")

        def made() -> None:
            protocol = server.factory()
            far.set_protocol(protocol)
            protocol.connection_made(far)

        server.process.run(self.loop.call_soon, made)
        protocol = factory()
        near.set_protocol(protocol)
        protocol.connection_made(near)
        return near, protocol

    # What transports use.

    def send(self, end: StreamTransport, item: Item) -> None:
        now_s = self.loop.time()
        due_s = now_s + self._delay_s(end.process.host, end.peer[0])
        if self.hold_up is not None and isinstance(item, bytes):
            due_s += self.hold_up(end, item)
        if end.wire:
            due_s = max(due_s, end.wire[-1][0])
        end.wire.append((due_s, item))
        if isinstance(item, bytes):
            self.bytes_sent += len(item)
        if len(end.wire) == 1:
            self.loop.call_at(due_s, self._arrive, end, context=KERNEL)

    def _arrive(self, end: StreamTransport) -> None:
        if not end.wire:
            return
        source, target = end.process.host, end.peer[0]
        if not self._is_open(source, target):
            self._stalled[end] = None
            return
        _, item = end.wire.popleft()
        if end.wire:
            self.loop.call_at(end.wire[0][0], self._arrive, end, context=KERNEL)
        size = len(item) if isinstance(item, bytes) else item
        self._trace(f"arrive {end.process}:{end.own[1]} {end.peer_end.process}:{end.peer[1]} {size}")
        end.peer_end.on_item(item)

    def forget(self, end: StreamTransport) -> None:
        self._ends.pop(end, None)

    def piece_size(self, size: int) -> int:
        return self._random.randint(1, size) if self._random.randrange(_TORN_READS) == 0 else size

    # Links.

    def _is_open(self, source: str, target: str) -> bool:
        return (source, target) not in self._cut and source not in self._dark and target not in self._dark

    def _delay_s(self, source: str, target: str) -> float:
        return self._random.uniform(_DELAY_MIN_S, self._delay_max_s) + self.slow.get((source, target), 0.0)

    def _repeat(self) -> None:
        stalled, self._stalled = self._stalled, {}
        for end in stalled:
            self.loop.call_later(self._random.uniform(0, _REPEAT_MAX_S), self._arrive, end, context=KERNEL)
