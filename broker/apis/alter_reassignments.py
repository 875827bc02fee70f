"""AlterPartitionReassignments 0 and 1: forwarded to the controller.

1: whether the replication factor may change (KIP-860). The controller has the rules
(`quorum/decisions/reassignments.py`). A client must be allowed to alter the cluster.
"""

from __future__ import annotations

from kio.schema.alter_partition_reassignments.v1.request import AlterPartitionReassignmentsRequest
from kio.schema.alter_partition_reassignments.v1.response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

from ...protocol.acls import AclOperation
from ...protocol.apis import ApiKey
from ...protocol.errors import KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ...quorum.decisions.reassignments import ALTER_PARTITION_REASSIGNMENTS
from ..cluster.controller_channel import ControllerChannel
from ..network.handlers import Handlers
from ..network.request import RequestContext
from ..security.client_changes import Guard, ask_controller, in_cluster


def register(handlers: Handlers, controller: ControllerChannel) -> None:
    async def alter(
        request: AlterPartitionReassignmentsRequest, context: RequestContext
    ) -> AlterPartitionReassignmentsResponse:
        guard: Guard[AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse] = in_cluster(
            ApiKey.ALTER_PARTITION_REASSIGNMENTS, AclOperation.ALTER
        )
        return await ask_controller(controller, ALTER_PARTITION_REASSIGNMENTS, request, context, guard)

    handlers.add_message(ApiKey.ALTER_PARTITION_REASSIGNMENTS, alter, answer_error=error_response)


def error_response(
    request: AlterPartitionReassignmentsRequest, error: KafkaError
) -> AlterPartitionReassignmentsResponse:
    code = kio_error(error.code)
    return AlterPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE,
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=code,
        error_message=error.message,
        responses=tuple(
            ReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(
                    ReassignablePartitionResponse(
                        partition_index=partition.partition_index, error_code=code, error_message=error.message
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )
