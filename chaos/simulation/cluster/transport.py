"""Both ends of a connection of the simulated network, as an event loop's transports behave.

What one end writes waits in its buffer until the window has room, is on the wire for as long as the network says, waits
at the other end until that reads, and is handed over in pieces of any size. A machine's kernel does all this, also for
a process that is paused; only what a protocol is told waits for its process.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any, Literal, Protocol, TypeAlias

from .process import Process

Address: TypeAlias = tuple[str, int]
# Data, the end of data, or a connection that is no more.
Item: TypeAlias = bytes | Literal["end", "reset"]

# What both kernels hold of a direction together.
WINDOW_BYTES = 256 * 1024
# Asyncio's own.
_HIGH_WATER_BYTES = 64 * 1024
_READ_BYTES = 256 * 1024


class Wires(Protocol):
    """The network as the ends of its connections see it."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    def send(self, end: StreamTransport, item: Item) -> None:
        """Bring the item to the other end, behind all that was sent from this one before."""

    def forget(self, end: StreamTransport) -> None:
        """The end is closed."""

    def piece_size(self, size: int) -> int:
        """How much of `size` bytes one read gives, in bytes."""

    def unbind(self, server: StreamServer) -> None:
        """Free the server's address."""


class StreamTransport(asyncio.Transport):
    """One end. The network sets `peer_end` before the protocol gets the connection."""

    peer_end: StreamTransport

    def __init__(self, network: Wires, process: Process, own: Address, peer: Address) -> None:
        super().__init__()
        self.process = process
        self.own = own
        self.peer = peer
        self.wire: deque[tuple[float, Item]] = deque()
        """What is under way from here, and when it arrives at the earliest."""
        self._network = network
        self._loop = network.loop
        self._protocol: asyncio.BaseProtocol = asyncio.Protocol()
        self._out = bytearray()
        self._wire_bytes = 0
        self._inbox = bytearray()
        self._has_end_arrived = False
        self._is_end_told = False
        self._is_end_wanted = False
        self._is_end_sent = False
        self._is_reading_paused = False
        self._is_writing_paused = False
        self._is_reading_due = False
        self._is_closing = False
        self._is_gone = False
        self._high_bytes = _HIGH_WATER_BYTES
        self._low_bytes = _HIGH_WATER_BYTES // 4

    # What protocols call.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": self.peer, "sockname": self.own}.get(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return not self._is_reading_paused and not self._is_closing

    def pause_reading(self) -> None:
        self._is_reading_paused = True

    def resume_reading(self) -> None:
        if self._is_reading_paused:
            self._is_reading_paused = False
            self._read_soon()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high_bytes = high if high is not None else (_HIGH_WATER_BYTES if low is None else 4 * low)
        self._low_bytes = self._high_bytes // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return len(self._out)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low_bytes, self._high_bytes

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        assert not self._is_end_wanted, "written behind the end"
        if self._is_closing or self._is_gone:
            return
        self._out += data
        self._push()
        if len(self._out) > self._high_bytes and not self._is_writing_paused:
            self._is_writing_paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self._is_end_wanted = True
        self._push()

    def close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        self._push()

    def abort(self) -> None:
        self._lose(None, "reset" if self._inbox else "end")

    # What kernels do.

    def _push(self) -> None:
        """Put on the wire what there is room for."""
        if self._is_gone:
            return
        room = WINDOW_BYTES - self._wire_bytes - len(self.peer_end._inbox)
        if self._out and room > 0:
            piece = bytes(self._out[:room])
            del self._out[:room]
            self._wire_bytes += len(piece)
            self._network.send(self, piece)
        if self._out:
            return
        if (self._is_end_wanted or self._is_closing) and not self._is_end_sent:
            self._is_end_sent = True
            self._network.send(self, "reset" if self._is_closing and self._inbox else "end")
        if self._is_closing:
            self._forget(None)

    def on_item(self, item: Item) -> None:
        """The other end's kernel says so."""
        sender = self.peer_end
        if isinstance(item, bytes):
            sender._wire_bytes -= len(item)
        if self._is_gone:
            # No process is left that could take it.
            if isinstance(item, bytes):
                self._network.send(self, "reset")
            return
        match item:
            case "reset":
                self._lose(ConnectionResetError(104, "Connection reset by peer"), None)
                return
            case "end":
                self._has_end_arrived = True
            case bytes():
                self._inbox += item
        self._read_soon()

    def die(self, *, is_told: bool) -> None:
        """The process is gone. Its machine tells the other end, unless it is gone, too."""
        if self._is_gone:
            return
        self._is_gone = self._is_closing = True
        self._out.clear()
        if not is_told:
            self.wire.clear()
        elif not self._is_end_sent:
            self._network.send(self, "reset" if self._inbox else "end")
        self._network.forget(self)

    def reset(self) -> None:
        """The network breaks the connection, for this end."""
        self._lose(ConnectionResetError(104, "Connection reset by peer"), None)

    def _lose(self, error: Exception | None, last_word: Item | None) -> None:
        if self._is_gone:
            return
        self._is_closing = True
        self._out.clear()
        if last_word is not None and not self._is_end_sent:
            self._is_end_sent = True
            self._network.send(self, last_word)
        self._forget(error)

    def _forget(self, error: Exception | None) -> None:
        self._is_gone = True
        self._network.forget(self)
        self.process.run(self._loop.call_soon, self._tell_lost, error)

    def _tell_lost(self, error: Exception | None) -> None:
        self._protocol.connection_lost(error)

    # What the process does.

    def _read_soon(self) -> None:
        if not self._is_reading_due:
            self._is_reading_due = True
            self.process.run(self._loop.call_soon, self._read)

    def _read(self) -> None:
        """One piece in each turn of the loop, as from a socket."""
        self._is_reading_due = False
        if self._is_reading_paused or self._is_closing:
            return
        if self._inbox:
            self._deliver(self._network.piece_size(min(len(self._inbox), _READ_BYTES)))
            self.peer_end.process.run(self.peer_end._on_room)
            if self._inbox or self._has_end_arrived:
                self._read_soon()
        elif self._has_end_arrived and not self._is_end_told:
            self._is_end_told = True
            assert isinstance(self._protocol, asyncio.Protocol | asyncio.BufferedProtocol)
            if not self._protocol.eof_received():
                self.close()

    def _deliver(self, size: int) -> None:
        protocol = self._protocol
        if isinstance(protocol, asyncio.BufferedProtocol):
            buffer = memoryview(protocol.get_buffer(-1))
            size = min(size, len(buffer))
            buffer[:size] = self._inbox[:size]
            del self._inbox[:size]
            protocol.buffer_updated(size)
        else:
            assert isinstance(protocol, asyncio.Protocol)
            piece = bytes(self._inbox[:size])
            del self._inbox[:size]
            protocol.data_received(piece)

    def _on_room(self) -> None:
        self._push()
        if self._is_writing_paused and len(self._out) <= self._low_bytes:
            self._is_writing_paused = False
            self._loop.call_soon(self._resume_writing)

    def _resume_writing(self) -> None:
        if not self._is_gone:
            self._protocol.resume_writing()


class StreamServer(asyncio.AbstractServer):
    """A listening socket. It is bound at once, and accepts from `start_serving` on."""

    def __init__(self, network: Wires, process: Process, factory: Any, address: Address) -> None:
        self.process = process
        self.factory = factory
        self.address = address
        self.is_accepting = False
        self._network = network

    @property
    def sockets(self) -> tuple[_ListeningSocket, ...]:
        return (_ListeningSocket(self.address),)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._network.loop

    def is_serving(self) -> bool:
        return self.is_accepting

    async def start_serving(self) -> None:
        self.is_accepting = True

    def close(self) -> None:
        self.is_accepting = False
        self._network.unbind(self)

    async def serve_forever(self) -> None:
        raise NotImplementedError("serve_forever is not simulated")

    async def wait_closed(self) -> None:
        """It is closed at once."""


class _ListeningSocket:
    def __init__(self, address: Address) -> None:
        self._address = address

    def getsockname(self) -> Address:
        return self._address

    def fileno(self) -> int:
        """None of the system's; a closed one would be negative."""
        return 0
