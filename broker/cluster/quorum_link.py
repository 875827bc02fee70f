"""A node's tie to the metadata quorum: it votes in it (`voter_link.py`), or follows it (`observer_link.py`)."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from ...protocol.ids import NodeId
from ..network.request import RequestContext
from .controller_channel import NodeControllerChannel
from .voter_access import VoterAccess

if TYPE_CHECKING:
    from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest
    from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse

    from ..metrics.metrics import Metrics
    from ..network.handlers import Handlers

QUORUM_ANSWER_TIMEOUT_MS: Final = 1_000
"""For the leader's answer to DescribeQuorum: an operator waits for it, most of all when there is no leader."""


class QuorumLink(Protocol):
    """Used in this order; `stop` may come at any time."""

    @property
    def leader_id(self) -> NodeId | None:
        """Who leads the quorum, as far as this node knows; at any time."""

    @property
    def voter_access(self) -> VoterAccess:
        """Single voters; at any time."""

    @property
    def handlers(self) -> Handlers | None:
        """Of a controller's own listener, once it has started."""

    async def find_cluster_id(self) -> str | None:
        """The id of the cluster, asked of others; None when a new one is to be drawn."""

    async def start(self, cluster_id: str) -> Mapping[str, int]:
        """Returns the ports of the controller's listeners, if this is one, once the metadata is followed.

        Raises ConfigError, ConsensusFailed.
        """

    def add_metrics(self, metrics: Metrics) -> None:
        """Adds what it has to tell; once it has started."""

    def channel(self, timeout_ms: int) -> NodeControllerChannel: ...

    def describe_quorum(
        self, request: DescribeQuorumRequest, context: RequestContext
    ) -> Awaitable[DescribeQuorumResponse]: ...

    async def stop(self) -> None: ...
