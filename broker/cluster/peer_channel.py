"""Requests of Kafka's protocol to another broker of the cluster, or to this one, whichever has the id."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.ids import NodeId
from ...protocol.messages import Request as Message
from ...protocol.messages import Response, decode_response, encode_request
from ...protocol.own_apis import OwnApiKey
from ...quorum.links.rules.peer_proof import PeerRefused
from ..configuration.node_config import REQUEST_TIMEOUT_MS
from ..network.handlers import Handlers
from ..network.own_requests import OwnRequests
from ..network.request import RequestContext
from ..network.rules.client_envelope import ClientEnvelope, decode_answer, encode_envelope
from .metadata_cache import MetadataCache
from .peer_link import PeerLink, answer_unless

if TYPE_CHECKING:
    from ...client.connection import Connection
    from .peers import PeerConnector

FENCED_CHECK_MS: Final = 250
"""How soon a waiting request notices that its broker was fenced: others lead what that one led."""
_SIZE_BYTES: Final = 4
"""Of the size in front of a frame."""
_NO_CORRELATION: Final = 0


class PeerChannel:
    """One request to each broker at a time, over a connection that stays; who must not wait behind others' requests
    has a channel of its own. This node's own handlers are called without one. `attach` comes first."""

    def __init__(
        self,
        metadata: MetadataCache,
        peers: Callable[[], PeerConnector],
        *,
        node_id: NodeId,
        listener_name: str,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """`peers` is asked when there is another broker to reach; `listener_name` is that of the listeners by which
        brokers reach each other."""
        self._metadata = metadata
        self._node_id = node_id
        self._listener_name = listener_name
        self._loop = loop
        self._own: OwnRequests
        self._links: defaultdict[int, _Link] = defaultdict(lambda: _Link(peers))
        self._is_closed = False

    def attach(self, handlers: Handlers) -> None:
        """What this node serves."""
        self._own = OwnRequests(handlers, self._loop)

    async def request(self, broker_id: int, message: Message, *, timeout_ms: int = REQUEST_TIMEOUT_MS) -> Response:
        """The broker's answer, of the class that stands for the version used (see `Connection.version_for`).

        Error codes inside the answer are the caller's business. Raises KafkaError when there is no answer: what was
        asked may or may not have been done. When to ask again is the caller's business too.
        """
        own = RequestContext(
            listener_name=self._listener_name,
            peer_host="",
            client_id=f"node-{self._node_id}",
            principal=f"Node:{self._node_id}",
            node_id=self._node_id,
        )
        return await self._ask(
            broker_id, message, own, timeout_ms, lambda connection: connection.call(message, timeout_ms=timeout_ms)
        )

    async def request_for(
        self, client: RequestContext, broker_id: int, message: Message, *, timeout_ms: int = REQUEST_TIMEOUT_MS
    ) -> Response:
        """As `request`, in the name of a client: the broker does and tells what that one may have."""
        return await self._ask(
            broker_id,
            message,
            client,
            timeout_ms,
            lambda connection: _call_for(client, connection, message, timeout_ms),
        )

    async def _ask(
        self,
        broker_id: int,
        message: Message,
        context: RequestContext,
        timeout_ms: int,
        call: Callable[[Connection], Awaitable[Response]],
    ) -> Response:
        """`context` is who asks where the broker is this node, `call` asks another one."""
        broker_id = NodeId(broker_id)
        try:
            if broker_id == self._node_id:
                async with asyncio.timeout(timeout_ms / 1000):
                    return await self._own.ask(message, context)
            connection = await self._connect(broker_id)
            return await self._answer(broker_id, call(connection))
        except TimeoutError as error:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error
        except (ConnectionError, CorruptData, PeerRefused) as error:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)) from error

    async def _answer(self, broker_id: NodeId, answer: Awaitable[Response]) -> Response:
        """Given up for lost if the broker is fenced meanwhile, or is another process."""
        asked = self._unfenced_process(broker_id)

        def lost() -> str | None:
            is_lost = asked is not None and self._unfenced_process(broker_id) != asked
            return f"node {broker_id} was fenced before it answered" if is_lost else None

        return await answer_unless(answer, lost, check_ms=FENCED_CHECK_MS)

    def _unfenced_process(self, broker_id: NodeId) -> UUID | None:
        broker = self._metadata.image.brokers.get(broker_id)
        return None if broker is None or broker.is_fenced else broker.incarnation_id

    async def close(self) -> None:
        """The node stops."""
        self._is_closed = True
        for link in self._links.values():
            # After a connection attempt that holds the lock.
            async with link.turn:
                await link.peer.close()

    async def _connect(self, broker_id: NodeId) -> Connection:
        if self._is_closed:
            raise ConnectionError("this node stops")
        link = self._links[broker_id]
        async with link.turn:
            return await link.peer.connect(broker_id, self._address_of(broker_id))

    def _address_of(self, broker_id: NodeId) -> tuple[str, int]:
        broker = self._metadata.image.brokers.get(broker_id)
        if broker is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"the metadata do not tell where node {broker_id} is")
        endpoint = broker.endpoint(self._listener_name)
        if endpoint is None:
            raise KafkaError(
                ErrorCode.BROKER_NOT_AVAILABLE,
                f"node {broker_id} has no listener {self._listener_name}, which inter.broker.listener.name of node "
                f"{self._node_id} says",
            )
        return endpoint.host, endpoint.port


async def _call_for(client: RequestContext, connection: Connection, message: Message, timeout_ms: int) -> Response:
    """Raises KafkaError where the broker has no answer, and as `Connection.call_own`."""
    api_key, version = message.__api_key__, connection.version_for(message)
    request = encode_request(api_key, version, _NO_CORRELATION, client.client_id, message)[_SIZE_BYTES:]
    envelope = ClientEnvelope(client.principal, client.peer_host, client.is_token_authenticated, request)
    told = await connection.call_own(OwnApiKey.ASK_FOR_CLIENT, encode_envelope(envelope), timeout_ms=timeout_ms)
    _, response = decode_response(api_key, version, decode_answer(told))
    return response


class _Link:
    """To one broker; `turn` is held while it connects."""

    __slots__ = ("peer", "turn")

    def __init__(self, peers: Callable[[], PeerConnector]) -> None:
        self.turn = asyncio.Lock()
        self.peer = PeerLink(peers)
