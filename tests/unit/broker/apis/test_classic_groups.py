"""What the shard of a group returns or raises, as responses of SyncGroup, Heartbeat and LeaveGroup."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from group_puppet import CONFIG
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.sync_group.v5.request import SyncGroupRequest
from kio.schema.types import GroupId
from kio.static.primitive import i32
from permission_cases import UNRESTRICTED

from penstock.broker.apis.classic_groups import register
from penstock.broker.network.handlers import Handlers
from penstock.protocol.apis import ApiKey
from penstock.protocol.errors import ErrorCode, KafkaError

SYNC = SyncGroupRequest(
    group_id=GroupId("g"),
    generation_id=i32(1),
    member_id="one",
    protocol_type="consumer",
    protocol_name="range",
    assignments=(),
)
BEGUN = SimpleNamespace(api_version=5, context=UNRESTRICTED)
HEARTBEAT = HeartbeatRequest(group_id=GroupId("g"), generation_id=i32(1), member_id="one")


class Loading:
    """A partition of `__consumer_offsets`."""

    def __init__(self, error: ErrorCode) -> None:
        self.error = error

    def event(self) -> object:
        raise KafkaError(self.error)

    def reply_when_committed(self, respond: Callable[[Any], None], _answer_error: object) -> Callable[[Any], None]:
        return respond


def told(api_key: ApiKey, message: object, error: ErrorCode, *, is_partition_there: bool) -> ErrorCode:
    def get(_group_id: str) -> Loading:
        if is_partition_there:
            return Loading(error)
        raise KafkaError(error)

    handlers = Handlers()
    groups: Any = SimpleNamespace(get=get)
    register(handlers, groups, CONFIG)
    handler: Any = handlers.by_reply[api_key]
    answers: list[Any] = []
    try:
        handler.begin(message, BEGUN, answers.append)
    except KafkaError as failure:
        answers.append(handler.answer_error(message, failure))
    (answer,) = answers
    return ErrorCode(int(answer.error_code))


@pytest.mark.parametrize("is_partition_there", [True, False])
def test_consumers_that_do_not_expect_it_are_not_told_that_a_group_is_loaded(is_partition_there: bool) -> None:
    loading, elsewhere = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR
    expected = {
        (ApiKey.HEARTBEAT, loading): ErrorCode.NONE,
        (ApiKey.SYNC_GROUP, loading): ErrorCode.REBALANCE_IN_PROGRESS,
        (ApiKey.HEARTBEAT, elsewhere): elsewhere,
        (ApiKey.SYNC_GROUP, elsewhere): elsewhere,
    }
    messages = {ApiKey.HEARTBEAT: HEARTBEAT, ApiKey.SYNC_GROUP: SYNC}
    for (api_key, error), answer in expected.items():
        assert told(api_key, messages[api_key], error, is_partition_there=is_partition_there) is answer, api_key.name


def test_leave_group_names_members_as_the_request_does() -> None:
    """A static member that is named by its instance id alone has an empty member id in the response too."""
    errors = [ErrorCode.NONE, ErrorCode.FENCED_INSTANCE_ID]
    partition = SimpleNamespace(
        event=lambda: nullcontext(SimpleNamespace(leave=lambda _message: errors)),
        reply_when_committed=lambda respond, _answer_error: respond,
    )
    handlers = Handlers()
    groups: Any = SimpleNamespace(get=lambda _group_id: partition)
    register(handlers, groups, CONFIG)
    handler: Any = handlers.by_reply[ApiKey.LEAVE_GROUP]
    named = [("", "i1"), ("one", "i2")]
    members = tuple(MemberIdentity(member_id=one, group_instance_id=other, reason=None) for one, other in named)
    answers: list[Any] = []
    handler.begin(LeaveGroupRequest(group_id=GroupId("g"), members=members), BEGUN, answers.append)
    (answer,) = answers
    assert int(answer.error_code) == 0
    assert [(one.member_id, one.group_instance_id) for one in answer.members] == named
    assert [int(one.error_code) for one in answer.members] == [int(error) for error in errors]
