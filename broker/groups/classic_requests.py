"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup, to whichever kind of group has the name (KIP-848).

A consumer group without members is given up for a classic one when a member of the classic protocol joins.
"""

from __future__ import annotations

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.leave_group.v5.request import LeaveGroupRequest
from kio.schema.leave_group.v5.response import LeaveGroupResponse
from kio.schema.sync_group.v5.request import SyncGroupRequest
from kio.schema.sync_group.v5.response import SyncGroupResponse

from ..coordination.ports import Reply
from .classic.protocol import ClassicProtocol, JoinContext
from .consumer.consumer_groups import ConsumerGroups
from .group_table import GroupTable


class ClassicRequests:
    def __init__(self, groups: GroupTable, classic: ClassicProtocol, consumer: ConsumerGroups) -> None:
        self._groups = groups
        self._classic = classic
        self._consumer = consumer

    def join(self, request: JoinGroupRequest, context: JoinContext, reply: Reply[JoinGroupResponse]) -> None:
        """`reply` may be called much later. Raises KafkaError."""
        group = self._groups.find_consumer(request.group_id)
        if group is not None and not group.is_empty:
            self._consumer.classic_members.join(group, request, context, reply)
            return
        if group is not None:
            self._consumer.make_classic(group)
        self._classic.join(request, context, reply)

    def sync(self, request: SyncGroupRequest, reply: Reply[SyncGroupResponse]) -> None:
        """`reply` may be called later. Raises KafkaError."""
        group = self._groups.find_consumer(request.group_id)
        if group is not None:
            self._consumer.classic_members.sync(group, request, reply)
        else:
            self._classic.sync(request, reply)

    def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        """Raises KafkaError."""
        group = self._groups.find_consumer(request.group_id)
        if group is not None:
            return self._consumer.classic_members.heartbeat(group, request)
        return self._classic.heartbeat(request)

    def leave(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        """Raises KafkaError."""
        group = self._groups.find_consumer(request.group_id)
        if group is not None:
            return self._consumer.classic_members.leave(group, request)
        return self._classic.leave(request)
