"""Requests of APIs that are not built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from random import Random
from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.alter_user_scram_credentials.v0 import request as scram
from kio.schema.share_group_describe.v1.request import ShareGroupDescribeRequest
from kio.schema.types import GroupId
from kio.schema.write_share_group_state.v1 import request as share_state
from kio.static.primitive import i8, i32, i64
from memory_node import World, describe, run
from random_entities import random_entity

from penstock.broker.apis.unimplemented import TOKEN_APIS, refusal, register
from penstock.broker.network.handlers import Handlers
from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.errors import ErrorCode
from penstock.protocol.messages import decode_response, encode_response

UNSUPPORTED = ErrorCode.UNSUPPORTED_VERSION


def not_built() -> list[ApiKey]:
    """Of a node."""
    found: list[ApiKey] = []

    async def scenario() -> None:
        async with World().running() as (node, _):
            built = {api.key for api in node.parts.handlers.built}
            found.extend(api.key for api in APIS.values() if api.on_broker and api.key not in built)

    run(scenario)
    return found


def errors_in(value: Any) -> Iterator[int]:
    if isinstance(value, tuple):
        for one in value:
            yield from errors_in(one)
    elif is_dataclass(value):
        for field in fields(value):
            inside = getattr(value, field.name)
            if field.name == "error_code":
                yield int(inside)
            else:
                yield from errors_in(inside)


def test_every_request_is_answered_with_an_error_in_every_version() -> None:
    source = Random(7)
    for key in not_built():
        api = APIS[key]
        for version in range(api.min_version, api.max_version + 1):
            expected = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED if key in TOKEN_APIS else UNSUPPORTED
            errors: set[int] = set()
            # Some of them name nothing, and have no error then.
            for _ in range(20):
                request = random_entity(load_request_schema(key, api.max_version), source)
                response = refusal(key, request)
                _, read = decode_response(key, version, encode_response(key, version, 1, response)[4:])
                errors.update(errors_in(read))
            assert errors == {expected}, f"{api.name} v{version}"


def test_the_error_stands_at_what_the_request_names() -> None:
    deletions = tuple(scram.ScramCredentialDeletion(name=name, mechanism=i8(1)) for name in ("bob", "alice", "bob"))
    users: Any = refusal(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        scram.AlterUserScramCredentialsRequest(deletions=deletions, upsertions=()),
    )
    assert [(one.user, one.error_code) for one in users.results] == [("alice", UNSUPPORTED), ("bob", UNSUPPORTED)]
    groups: Any = refusal(
        ApiKey.SHARE_GROUP_DESCRIBE,
        ShareGroupDescribeRequest(group_ids=(GroupId("g"), GroupId("h")), include_authorized_operations=False),
    )
    assert [(one.group_id, one.error_code) for one in groups.groups] == [("g", UNSUPPORTED), ("h", UNSUPPORTED)]
    partition = share_state.PartitionData(
        partition=i32(3), state_epoch=i32(0), leader_epoch=i32(0), start_offset=i64(0), state_batches=()
    )
    topic = share_state.WriteStateData(topic_id=None, partitions=(partition,))
    written: Any = refusal(
        ApiKey.WRITE_SHARE_GROUP_STATE, share_state.WriteShareGroupStateRequest(group_id="g", topics=(topic,))
    )
    (state,) = written.results[0].partitions
    assert (state.partition, state.error_code) == (3, UNSUPPORTED)


def test_they_are_answered_and_not_advertised() -> None:
    async def scenario() -> None:
        async with World().running() as (_, connection):
            assert not {*not_built_keys} & connection.versions.keys()
            connection.versions = {**connection.versions, ApiKey.SHARE_GROUP_DESCRIBE: (1, 1)}
            message = ShareGroupDescribeRequest(group_ids=(GroupId("g"),), include_authorized_operations=False)
            answer: Any = await connection.call(message)
            assert answer.groups[0].error_code == UNSUPPORTED
            assert (await describe(connection)).brokers, "the connection goes on"

    not_built_keys = not_built()
    run(scenario)


@pytest.mark.parametrize("is_controller", [False, True])
def test_what_only_nodes_ask_for_is_left_out(*, is_controller: bool) -> None:
    handlers = Handlers()
    register(handlers, is_controller=is_controller)
    assert handlers.built == ()
    assert ApiKey.VOTE not in handlers.by_bytes
    assert (ApiKey.SHARE_FETCH in handlers.by_bytes) is not is_controller
    assert ApiKey.ADD_RAFT_VOTER in handlers.by_bytes
