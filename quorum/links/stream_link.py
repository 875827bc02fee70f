"""One link between voters over a stream: a greeting in which both sides prove who they are, then frames one way."""

from __future__ import annotations

import asyncio
import socket
import ssl
from abc import ABC, abstractmethod
from typing import Final, Protocol, cast
from uuid import UUID

from ...protocol.errors import CorruptData
from ...protocol.ids import NodeId
from .rules.link_frames import MAX_FRAME_BYTES, FrameReader, encode_frame
from .rules.link_hello import PREFACE, DialerHello, ListenerHello, encode_refusal
from .rules.peer_proof import PeerHello, PeerRefused
from .rules.refusals import Refusals

# A peer that takes nothing for so long is cut off, and gets what it missed from the log later.
MAX_BUFFERED_BYTES: Final = 64 * 1024 * 1024

_HELLO_TIMEOUT_S: Final = 5.0
# A machine that lost its power closes nothing. So long the kernel waits before it asks a silent one, between two
# questions, and how many it asks.
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 1), ("TCP_KEEPCNT", 5))


class LinkOwner(Protocol):
    """What a link uses of `StreamLinks`, to which it belongs."""

    refusals: Refusals

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    def check_certificate(self, transport: asyncio.Transport, peer: PeerHello) -> None: ...

    def on_outgoing_up(self, link: OutgoingLink, peer: PeerHello) -> None: ...

    def on_outgoing_down(self, link: OutgoingLink, peer_id: NodeId) -> None: ...

    def on_incoming_up(self, link: IncomingLink, peer: PeerHello) -> None: ...

    def on_incoming_down(self, link: IncomingLink, peer_id: NodeId | None) -> None: ...

    def on_message(self, link: IncomingLink, peer_id: NodeId, data: bytes) -> None: ...

    def on_closed_by_peer(self, peer_id: NodeId) -> None: ...


class _Link(asyncio.Protocol, ABC):
    """What both directions have in common."""

    def __init__(self, links: LinkOwner) -> None:
        self._links = links
        self._reader = FrameReader()
        self._transport: asyncio.Transport | None = None
        self._hello_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's by class.
        self._transport = cast(asyncio.Transport, transport)
        keep_alive(transport.get_extra_info("socket"))
        self._hello_timer = self._links.loop.call_later(_HELLO_TIMEOUT_S, self.abort)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            for frame in self._reader.frames():
                self.on_frame(frame)
                if self._transport is None:
                    return
        except (CorruptData, PeerRefused) as error:
            self._links.refusals.note(self.about(), f"the link of {self.about()} is closed: {error}")
            self.turn_away(error)

    def turn_away(self, _: CorruptData | PeerRefused) -> None:
        """Close the connection of one that is no peer."""
        self.abort()

    @abstractmethod
    def on_frame(self, frame: bytes) -> None: ...

    @abstractmethod
    def about(self) -> str:
        """Who is on the other side, as far as is known."""

    def write(self, payload: bytes) -> None:
        if self._transport is not None:
            self._transport.write(encode_frame(payload))

    def end_hello(self) -> None:
        if self._hello_timer is not None:
            self._hello_timer.cancel()
            self._hello_timer = None
        self._reader.max_bytes = MAX_FRAME_BYTES

    def abort(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()

    @property
    def _address(self) -> str:
        name = None if self._transport is None else self._transport.get_extra_info("peername")
        return f"{name[0]}" if isinstance(name, tuple) else "an unknown address"


class OutgoingLink(_Link):
    """A link that this node dialed: it sends here."""

    def __init__(self, links: LinkOwner, peer_id: NodeId, hello: DialerHello) -> None:
        super().__init__(links)
        self._peer_id = peer_id
        self._hello = hello
        self._is_up = False
        self.directory_id: UUID | None = None
        self.closed: asyncio.Future[tuple[bool, bool]] = links.loop.create_future()
        """At the end: whether it was up, and whether the other side closed it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self._transport is not None
        self._transport.write(PREFACE + encode_frame(self._hello.first))

    def on_frame(self, frame: bytes) -> None:
        if self._is_up:
            raise CorruptData("bytes from the side that only receives")
        peer, last = self._hello.on_answer(frame)
        assert self._transport is not None
        self._links.check_certificate(self._transport, peer)
        self.write(last)
        self.end_hello()
        self._is_up = True
        self.directory_id = peer.directory_id
        self._links.on_outgoing_up(self, peer)

    def send(self, data: bytes) -> None:
        transport = self._transport
        if transport is None:
            return
        if transport.get_write_buffer_size() > MAX_BUFFERED_BYTES:
            self._links.refusals.note(self.about(), f"the link of {self.about()} is cut: it does not take what is sent")
            self.abort()
            return
        self.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        closed_by_peer = self._transport is not None
        if isinstance(exc, ssl.SSLError):
            # In TLS 1.3 the dialing side receives the verdict on its certificate after the handshake.
            self._links.refusals.note(self.about(), f"the link of {self.about()} is closed by it: {exc}")
        self._transport = None
        self.end_hello()
        if not self.closed.done():
            self.closed.set_result((self._is_up, closed_by_peer))
        self._links.on_outgoing_down(self, self._peer_id)
        if self._is_up and closed_by_peer:
            self._links.on_closed_by_peer(self._peer_id)

    def about(self) -> str:
        return f"node {self._peer_id}"


class IncomingLink(_Link):
    """A link that a peer dialed: this node receives on it."""

    def __init__(self, links: LinkOwner, hello: ListenerHello) -> None:
        super().__init__(links)
        self._hello = hello
        self._has_answered = False
        self._peer_id: NodeId | None = None

    def on_frame(self, frame: bytes) -> None:
        if self._peer_id is not None:
            self._links.on_message(self, self._peer_id, frame)
        elif self._has_answered:
            peer = self._hello.on_proof(frame)
            self.end_hello()
            self._peer_id = peer.node_id
            self._links.on_incoming_up(self, peer)
        else:
            self.write(self._hello.on_first(frame))
            self._has_answered = True

    def turn_away(self, error: CorruptData | PeerRefused) -> None:
        transport, self._transport = self._transport, None
        if transport is None:
            return
        if isinstance(error, PeerRefused) and not self._has_answered:
            # A node configured for the wrong cluster logs the reason itself.
            transport.write(encode_frame(encode_refusal(error)))
            transport.close()
        else:
            transport.abort()

    def connection_lost(self, _: Exception | None) -> None:
        closed_by_peer = self._transport is not None
        self._transport = None
        self.end_hello()
        self._links.on_incoming_down(self, self._peer_id)
        if self._peer_id is not None and closed_by_peer:
            self._links.on_closed_by_peer(self._peer_id)

    def about(self) -> str:
        return self._address if self._peer_id is None else f"node {self._peer_id}"


def keep_alive(connected: socket.socket | None) -> None:
    """Have the kernel find out when the other machine is gone."""
    if connected is None:
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
