"""ElectLeaders 0 to 2: forwarded to the controller.

1: the election type, preferred or unclean (KIP-460). The controller has the rules (`quorum/decisions/elections.py`);
the response is sent when this node has applied the new leaders. A client must be allowed to alter the cluster.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kio.schema.elect_leaders.v2.request import ElectLeadersRequest
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse, PartitionResult, ReplicaElectionResult

from ...protocol.acls import AclOperation
from ...protocol.apis import ApiKey
from ...protocol.errors import KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ...quorum.decisions.elections import ELECT_LEADERS
from ..cluster.controller_channel import ControllerChannel
from ..network.handlers import Handlers
from ..network.request import RequestContext
from ..security.client_changes import Guard, ask_controller, in_cluster


def register(handlers: Handlers, controller: ControllerChannel, *, settled: Callable[[], Awaitable[None]]) -> None:
    """`settled` waits a short time until this node has applied the metadata to its partitions."""

    async def elect(request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
        guard: Guard[ElectLeadersRequest, ElectLeadersResponse] = in_cluster(ApiKey.ELECT_LEADERS, AclOperation.ALTER)
        response = await ask_controller(controller, ELECT_LEADERS, request, context, guard)
        await settled()
        return response

    handlers.add_message(ApiKey.ELECT_LEADERS, elect, answer_error=error_response)


def error_response(request: ElectLeadersRequest, error: KafkaError) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(error.code),
        replica_election_results=tuple(
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=tuple(
                    PartitionResult(
                        partition_id=partition, error_code=kio_error(error.code), error_message=error.message
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topic_partitions or ()
        ),
    )
