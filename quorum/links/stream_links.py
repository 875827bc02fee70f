"""Links between voters over real streams: this node dials every peer, and takes in what dials it.

A node sends on the link that it dialed and receives on the one that it accepted. The owner of the listener reads the
first bytes of a connection and gives those that `starts_link` to `accept`.

| an outgoing link | leaves by                                                                          | to      |
|------------------|------------------------------------------------------------------------------------|---------|
| dialing          | connected, and both sides proved who they are                                      | up      |
| dialing          | refused, timed out or turned away: after a pause                                   | dialing |
| up               | closed, reset, silent or too slow                                                  | dialing |

When the other side closed an `up` link, it is dialed again at once and a moment later; if the machine refuses these,
its process is gone, and the listener is told so.
"""

import asyncio
import logging
import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, cast
from uuid import UUID

from ...protocol.errors import CorruptData
from ...protocol.ids import NodeId
from .port_probe import Refused, Unclear, probe_port
from .rules.link_frames import MAX_FRAME_BYTES, FrameReader, encode_frame
from .rules.link_hello import PREFACE, DialerHello, ListenerHello, encode_refusal
from .rules.node_certificates import NodeCertificates
from .rules.peer_links import LinkListener
from .rules.peer_proof import PeerHello, PeerRefused
from .rules.refusals import Refusals

logger = logging.getLogger(__name__)

# A peer that takes nothing for so long is cut off, and gets what it missed from the log later.
MAX_BUFFERED_BYTES: Final = 64 * 1024 * 1024

# Accepted and not known yet. With one more the oldest is closed: who knows what to say needs milliseconds.
GREETINGS_MAX: Final = 64

_DIAL_TIMEOUT_S: Final = 3.0
_HELLO_TIMEOUT_S: Final = 5.0
_REDIAL_S: Final = 0.1
# A peer that closes a greeting is starting, perhaps, or does not want us: pauses double.
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0
# When a peer closed its link, it is looked for at once and after each of these, until it was refused twice in a row: a
# process that is ending may still accept for a moment.
_LOSS_REDIALS_S: Final = (0.0, 0.02, 0.04)
_REFUSALS_OF_THE_GONE: Final = 2
# A machine that lost its power closes nothing. So long the kernel waits before it asks a silent one, between two
# questions, and how many it asks.
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 1), ("TCP_KEEPCNT", 5))


class StreamLinks:
    """All links of one voter (see `peer_links.PeerLinks`)."""

    def __init__(
        self,
        addresses: Mapping[NodeId, tuple[str, int]],
        *,
        hello: Callable[[], PeerHello],
        secret: bytes,
        loop: asyncio.AbstractEventLoop,
        certificates: NodeCertificates | None = None,
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
    ) -> None:
        """`addresses` are those of the other voters; `hello` says who this one is, with a nonce that is new each time.

        `tls` is asked each time a peer is dialed. With `certificates`, a peer must also be named by the certificate
        that it shows.
        """
        self._addresses = dict(addresses)
        self._hello = hello
        self._secret = secret
        self._loop = loop
        self._certificates = certificates
        self._tls = tls
        self._listener: LinkListener | None = None
        self._outgoing: dict[NodeId, _Outgoing] = {}
        self._incoming: dict[NodeId, _Incoming] = {}
        # In the order in which they came.
        self._greeting: dict[_Incoming, None] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._unreached: set[NodeId] = set()
        self.refusals = Refusals(loop.time)

    def start(self, listener: LinkListener) -> None:
        self._listener = listener
        self._tasks = [self._loop.create_task(self._keep_dialing(peer_id)) for peer_id in sorted(self._addresses)]

    def send(self, peer_id: NodeId, data: bytes) -> None:
        link = self._outgoing.get(peer_id)
        if link is not None:
            link.send(data)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for link in (*self._outgoing.values(), *self._incoming.values(), *self._greeting):
            link.abort()
        self._listener = None

    @staticmethod
    def starts_link(first_bytes: bytes) -> bool | None:
        """Whether a connection that begins so is a peer's link; None while more bytes are needed to say."""
        if len(first_bytes) >= len(PREFACE):
            return first_bytes.startswith(PREFACE)
        return None if PREFACE.startswith(first_bytes) else False

    def accept(self, transport: asyncio.Transport, first_bytes: bytes) -> None:
        """Take over a connection that `starts_link`; its protocol is replaced. Ours to close from now on."""
        assert first_bytes.startswith(PREFACE)
        if self._listener is None:
            transport.abort()
            return
        if len(self._greeting) >= GREETINGS_MAX:
            oldest = next(iter(self._greeting))
            del self._greeting[oldest]
            oldest.abort()
        hello = ListenerHello(
            self._hello(),
            self._secret,
            frozenset(self._addresses),
            self._directory_of,
            partial(self.check_certificate, transport),
        )
        link = _Incoming(self, hello)
        self._greeting[link] = None
        transport.set_protocol(link)
        link.connection_made(transport)
        link.data_received(first_bytes[len(PREFACE) :])

    def _directory_of(self, peer_id: NodeId) -> UUID | None:
        link = self._outgoing.get(peer_id)
        return None if link is None else link.directory_id

    async def _keep_dialing(self, peer_id: NodeId) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                link = await self._dial(peer_id)
            except Exception:
                # Without this task the peer would never be dialed again.
                logger.exception("Failed to dial quorum node: node=%d", peer_id)
                link = None
            if link is None:
                await asyncio.sleep(_REDIAL_S)
                continue
            was_up, closed_by_peer = await link.closed
            if not was_up:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                continue
            pause_s = _FIRST_PAUSE_S
            if closed_by_peer and await self._is_gone(peer_id):
                assert self._listener is not None
                self._listener.on_peer_gone(peer_id)

    async def _is_gone(self, peer_id: NodeId) -> bool:
        host, port = self._addresses[peer_id]
        refusals = 0
        for delay_s in _LOSS_REDIALS_S:
            await asyncio.sleep(delay_s)
            found = await probe_port(self._loop, host, port, timeout_s=_DIAL_TIMEOUT_S)
            if isinstance(found, Unclear):
                return False
            if isinstance(found, Refused):
                refusals += 1
                if refusals == _REFUSALS_OF_THE_GONE:
                    return True
            else:
                found.close()
                refusals = 0
        return False

    async def _dial(self, peer_id: NodeId) -> "_Outgoing | None":
        host, port = self._addresses[peer_id]
        hello = DialerHello(self._hello(), self._secret, peer_id)
        try:
            async with asyncio.timeout(_DIAL_TIMEOUT_S):
                _, link = await self._loop.create_connection(
                    lambda: _Outgoing(self, peer_id, hello), host, port, ssl=self._tls()
                )
        except (OSError, ValueError) as error:
            if peer_id not in self._unreached:
                self._unreached.add(peer_id)
                logger.info(
                    "Connection to quorum node could not be established: node=%d address=%s:%d reason=%s",
                    peer_id,
                    host,
                    port,
                    error,
                )
            return None
        return link

    # What the links tell.

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def check_certificate(self, transport: asyncio.Transport, peer: PeerHello) -> None:
        """Raises PeerRefused."""
        if self._certificates is not None:
            self._certificates.check(peer.node_id, transport.get_extra_info("peercert"))

    def on_outgoing_up(self, link: "_Outgoing", peer: PeerHello) -> None:
        self._outgoing[peer.node_id] = link
        self._unreached.discard(peer.node_id)
        if self._listener is not None:
            self._listener.on_link_up(peer.node_id, peer.directory_id)

    def on_outgoing_down(self, link: "_Outgoing", peer_id: NodeId) -> None:
        if self._outgoing.get(peer_id) is link:
            del self._outgoing[peer_id]
            if self._listener is not None:
                self._listener.on_link_down(peer_id)

    def on_incoming_up(self, link: "_Incoming", peer: PeerHello) -> None:
        self._greeting.pop(link, None)
        older = self._incoming.get(peer.node_id)
        if older is not None:
            # The peer dialed again: what was on the way on the older connection is lost, as on any link that breaks.
            older.abort()
        self._incoming[peer.node_id] = link

    def on_incoming_down(self, link: "_Incoming", peer_id: NodeId | None) -> None:
        self._greeting.pop(link, None)
        if peer_id is not None and self._incoming.get(peer_id) is link:
            del self._incoming[peer_id]

    def on_message(self, link: "_Incoming", peer_id: NodeId, data: bytes) -> None:
        if self._listener is not None and self._incoming.get(peer_id) is link:
            self._listener.on_message(peer_id, data)


class _Link(asyncio.Protocol, ABC):
    """What both directions have in common."""

    def __init__(self, links: StreamLinks) -> None:
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


class _Outgoing(_Link):
    """A link that this node dialed: it sends here."""

    def __init__(self, links: StreamLinks, peer_id: NodeId, hello: DialerHello) -> None:
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

    def about(self) -> str:
        return f"node {self._peer_id}"


class _Incoming(_Link):
    """A link that a peer dialed: this node receives on it."""

    def __init__(self, links: StreamLinks, hello: ListenerHello) -> None:
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
        self._transport = None
        self.end_hello()
        self._links.on_incoming_down(self, self._peer_id)

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
