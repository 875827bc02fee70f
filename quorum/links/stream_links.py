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
import ssl
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final
from uuid import UUID

from ...protocol.ids import NodeId
from .port_probe import Refused, Unclear, probe_port
from .rules.link_hello import PREFACE, DialerHello, ListenerHello
from .rules.node_certificates import NodeCertificates
from .rules.peer_links import LinkListener
from .rules.peer_proof import PeerHello
from .rules.refusals import Refusals
from .stream_link import IncomingLink, OutgoingLink

logger = logging.getLogger(__name__)

# Accepted and not known yet. With one more the oldest is closed: who knows what to say needs milliseconds.
GREETINGS_MAX: Final = 64

_DIAL_TIMEOUT_S: Final = 3.0
_REDIAL_S: Final = 0.1
# A peer that closes a greeting is starting, perhaps, or does not want us: pauses double.
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0
# When a peer closed its link, it is looked for at once and after each of these, until it was refused twice in a row: a
# process that is ending may still accept for a moment.
_LOSS_REDIALS_S: Final = (0.0, 0.02, 0.04)
_REFUSALS_OF_THE_GONE: Final = 2


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
        on_closed_by_peer: Callable[[NodeId], None] = lambda _peer_id: None,
    ) -> None:
        """`addresses` are those of the other voters; `hello` says who this one is, with a nonce that is new each time.

        `tls` is asked each time a peer is dialed. With `certificates`, a peer must also be named by the certificate
        that it shows. `on_closed_by_peer` is called with a peer whose side closed a link.
        """
        self._addresses = dict(addresses)
        self._hello = hello
        self._secret = secret
        self._loop = loop
        self._certificates = certificates
        self._tls = tls
        self._on_closed_by_peer = on_closed_by_peer
        self._listener: LinkListener | None = None
        self._outgoing: dict[NodeId, OutgoingLink] = {}
        self._incoming: dict[NodeId, IncomingLink] = {}
        # In the order in which they came.
        self._greeting: dict[IncomingLink, None] = {}
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
        link = IncomingLink(self, hello)
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

    async def _dial(self, peer_id: NodeId) -> OutgoingLink | None:
        host, port = self._addresses[peer_id]
        hello = DialerHello(self._hello(), self._secret, peer_id)
        try:
            async with asyncio.timeout(_DIAL_TIMEOUT_S):
                _, link = await self._loop.create_connection(
                    lambda: OutgoingLink(self, peer_id, hello), host, port, ssl=self._tls()
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

    def on_outgoing_up(self, link: OutgoingLink, peer: PeerHello) -> None:
        self._outgoing[peer.node_id] = link
        self._unreached.discard(peer.node_id)
        if self._listener is not None:
            self._listener.on_link_up(peer.node_id, peer.directory_id)

    def on_outgoing_down(self, link: OutgoingLink, peer_id: NodeId) -> None:
        if self._outgoing.get(peer_id) is link:
            del self._outgoing[peer_id]
            if self._listener is not None:
                self._listener.on_link_down(peer_id)

    def on_incoming_up(self, link: IncomingLink, peer: PeerHello) -> None:
        self._greeting.pop(link, None)
        older = self._incoming.get(peer.node_id)
        if older is not None:
            # The peer dialed again: what was on the way on the older connection is lost, as on any link that breaks.
            older.abort()
        self._incoming[peer.node_id] = link

    def on_incoming_down(self, link: IncomingLink, peer_id: NodeId | None) -> None:
        self._greeting.pop(link, None)
        if peer_id is not None and self._incoming.get(peer_id) is link:
            del self._incoming[peer_id]

    def on_closed_by_peer(self, peer_id: NodeId) -> None:
        self._on_closed_by_peer(peer_id)

    def on_message(self, link: IncomingLink, peer_id: NodeId, data: bytes) -> None:
        if self._listener is not None and self._incoming.get(peer_id) is link:
            self._listener.on_message(peer_id, data)
