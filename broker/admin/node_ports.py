"""What HTTP operations need of the node that they look at and change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from ssl import SSLContext
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import NodeId
from ...protocol.messages import Request, Response
from ...protocol.rest.health import NodeState
from ...quorum.metadata.image import BrokerRegistration, MetadataImage
from ..cluster.metadata_cache import MetadataCache
from ..configuration.node_config import NodeConfig
from ..metrics.metrics import Metrics
from ..network.own_requests import OwnRequests
from ..network.request import RequestContext
from .rules.node_facts import NodeFacts

if TYPE_CHECKING:
    from ..apis.describe_quorum import DescribeQuorum
    from ..cluster.controller_channel import ControllerChannel
    from ..cluster.event_stream import EventStream
    from ..cluster.peer_channel import PeerChannel
    from ..cluster.voter_access import VoterAccess
    from ..network.request import Authorizer
    from ..security.http_identities import HttpIdentities

ResponseT = TypeVar("ResponseT", bound=Response)


async def no_facts() -> NodeFacts:
    return NodeFacts()


async def no_silent_voters() -> Mapping[NodeId, str]:
    return {}


class RunningNode(Struct, frozen=True, kw_only=True):
    """What there is only once the node has started. `peers` reaches brokers, this one too."""

    own: OwnRequests
    peers: PeerChannel
    describe_quorum: DescribeQuorum
    voter_access: VoterAccess
    controller: ControllerChannel


class NodePorts(Struct, frozen=True, kw_only=True):
    """A node, for the operations of its HTTP administration."""

    config: NodeConfig
    metadata: MetadataCache
    metrics: Metrics
    loop: asyncio.AbstractEventLoop
    wall_clock_ms: Callable[[], int]
    phase: Callable[[], str]
    """What the node does while it does not run, or waits for: a sentence."""
    running: Callable[[], RunningNode | None]
    is_stopping: Callable[[], bool] = lambda: False
    facts: Callable[[], Awaitable[NodeFacts]] = no_facts
    quorum_leader: Callable[[], NodeId | None] = lambda: None
    """Who leads the metadata quorum, as far as this node knows."""
    silent_voters: Callable[[], Awaitable[Mapping[NodeId, str]]] = no_silent_voters
    """The voters that do not answer this node, with the reasons; asked before it has started, too."""
    events: EventStream | None = None
    identities: Callable[[], HttpIdentities | None] = lambda: None
    """Tells who clients are; None until the node can."""
    authorizer: Authorizer | None = None
    tls: Callable[[], SSLContext] | None = None
    """Of https, asked for each connection."""

    @property
    def node_id(self) -> NodeId:
        return self.config.node_id

    @property
    def image(self) -> MetadataImage:
        """The newest metadata; an operation reads it once."""
        return self.metadata.image

    @property
    def own_context(self) -> RequestContext:
        """For what the node asks for itself, whatever the client may: what comes of it must not tell him more."""
        return RequestContext(
            listener_name=self.config.inter_broker_listener_name,
            peer_host="",
            client_id=f"node-{self.node_id}",
            principal=f"Node:{self.node_id}",
            node_id=self.node_id,
        )

    def parts(self) -> RunningNode:
        """Raises KafkaError BROKER_NOT_AVAILABLE, with the reason, while the node starts or stops."""
        running = self.running()
        if running is None:
            state = "is stopping" if self.is_stopping() else "has not started"
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"Node {self.node_id} {state}: {self.phase()}")
        return running

    def state(self) -> NodeState:
        """What the node says of itself."""
        if self.is_stopping():
            return "stopping"
        return "starting" if self.running() is None else "running"

    async def ask(self, message: Request, answer: type[ResponseT], context: RequestContext) -> ResponseT:
        """Asks this node, or where it does not serve the API an active broker. Raises KafkaError."""
        parts = self.parts()
        if parts.own.serves(message.__api_key__):
            return _checked(await parts.own.ask(message, context), answer)
        return await self.ask_broker(self.any_broker().id, message, answer, context)

    async def ask_broker(
        self, broker_id: int, message: Request, answer: type[ResponseT], context: RequestContext
    ) -> ResponseT:
        """Asks that broker, this one or another. Raises KafkaError, where there is no answer, too.

        Where there is an authorizer every broker answers by what the client of `context` may, `own_context` apart.
        """
        parts = self.parts()
        if broker_id == self.node_id and self.config.is_broker:
            return _checked(await parts.own.ask(message, context), answer)
        if context.authorizer is None or context.node_id is not None:
            return _checked(await parts.peers.request(broker_id, message), answer)
        return _checked(await parts.peers.request_for(context, broker_id, message), answer)

    def any_broker(self) -> BrokerRegistration:
        """An active broker, this one if it is. Raises KafkaError BROKER_NOT_AVAILABLE."""
        brokers = self.image.brokers
        own = brokers.get(self.node_id)
        if own is not None and not own.is_fenced:
            return own
        for broker in brokers.values():
            if not broker.is_fenced:
                return broker
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "No broker of this cluster is active.")

    def active_brokers(self) -> tuple[BrokerRegistration, ...]:
        return tuple(broker for _, broker in sorted(self.image.brokers.items()) if not broker.is_fenced)


def _checked(response: Response, answer: type[ResponseT]) -> ResponseT:
    assert isinstance(response, answer), f"{type(response)} is no {answer}"
    return response
