"""DescribeAcls, CreateAcls and DeleteAcls of a node, without an authorizer and with one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kio.schema.create_acls.v3.request import AclCreation, CreateAclsRequest
from kio.schema.delete_acls.v3.request import DeleteAclsFilter, DeleteAclsRequest
from kio.schema.describe_acls.v3.request import DescribeAclsRequest
from kio.static.primitive import i8
from memory_node import World, run

from penstock.broker.apis.acls import ACL_APIS
from penstock.client.connection import Connection, connect
from penstock.protocol.apis import APIS
from penstock.protocol.errors import ErrorCode

AUTHORIZER = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS",
}
WITH_CONTROLLER_LISTENER = {
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "controller_quorum_voters": "1@127.0.0.1:1",
}
ANY = i8(1)
DESCRIBE = DescribeAclsRequest(
    resource_type_filter=ANY,
    resource_name_filter=None,
    pattern_type_filter=ANY,
    principal_filter=None,
    host_filter=None,
    operation=ANY,
    permission_type=ANY,
)
ACL = AclCreation(
    resource_type=i8(2),
    resource_name="topic",
    resource_pattern_type=i8(3),
    principal="User:alice",
    host="*",
    operation=i8(3),
    permission_type=i8(3),
)
FILTER = DeleteAclsFilter(
    resource_type_filter=ANY,
    resource_name_filter=None,
    pattern_type_filter=ANY,
    principal_filter=None,
    host_filter=None,
    operation=ANY,
    permission_type=ANY,
)


@pytest.mark.parametrize("listener", ["PLAINTEXT", "CONTROLLER"])
def test_each_is_advertised_and_answered_security_disabled_in_every_version(listener: str) -> None:
    async def scenario() -> None:
        async with (
            World(**WITH_CONTROLLER_LISTENER).running() as (node, _),
            await connect("127.0.0.1", node.bound_ports[listener]) as connection,
        ):
            for api_key in ACL_APIS:
                api = APIS[api_key]
                assert connection.versions[api_key] == (api.min_version, api.max_version)
            for version in (1, 2, 3):
                connection.versions = dict.fromkeys(ACL_APIS, (version, version))
                await check_answers(connection)

    run(scenario)


async def check_answers(connection: Connection) -> None:
    described: Any = await connection.call(DESCRIBE)
    assert described.error_code == ErrorCode.SECURITY_DISABLED
    assert described.error_message == "No Authorizer is configured on the broker"
    assert described.resources == ()
    for count in (0, 1, 3):
        created: Any = await connection.call(CreateAclsRequest(creations=(ACL,) * count))
        deleted: Any = await connection.call(DeleteAclsRequest(filters=(FILTER,) * count))
        for results in (created.results, deleted.filter_results):
            told = [(one.error_code, one.error_message) for one in results]
            assert told == [(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")] * count


@pytest.mark.parametrize(
    "request_",
    [
        replace(DESCRIBE, operation=i8(0)),
        replace(DESCRIBE, pattern_type_filter=i8(0)),
        CreateAclsRequest(creations=(ACL, replace(ACL, resource_type=i8(0)))),
        DeleteAclsRequest(filters=(FILTER, replace(FILTER, permission_type=i8(0)))),
    ],
)
def test_an_unknown_enumeration_closes_the_connection(request_: Any) -> None:
    async def scenario() -> None:
        async with World().running() as (_, connection):
            with pytest.raises(ConnectionError):
                await connection.call(request_)

    run(scenario)


@pytest.mark.parametrize("listener", ["PLAINTEXT", "CONTROLLER"])
def test_acls_are_created_described_and_deleted(listener: str) -> None:
    async def scenario() -> None:
        async with (
            World(**WITH_CONTROLLER_LISTENER, **AUTHORIZER).running() as (node, _),
            await connect("127.0.0.1", node.bound_ports[listener]) as connection,
        ):
            bad = replace(ACL, operation=ANY)
            group = replace(ACL, resource_type=i8(3), host="10.0.0.1")
            answer: Any = await connection.call(CreateAclsRequest(creations=(ACL, bad, group)))
            codes = [result.error_code for result in answer.results]
            assert codes == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
            described: Any = await connection.call(DESCRIBE)
            assert [(one.resource_type, one.resource_name, one.pattern_type) for one in described.resources] == [
                (2, "topic", 3),
                (3, "topic", 3),
            ]
            assert [acl.host for one in described.resources for acl in one.acls] == ["*", "10.0.0.1"]
            deleted: Any = await connection.call(DeleteAclsRequest(filters=(replace(FILTER, host_filter="*"),)))
            assert [acl.resource_type for acl in deleted.filter_results[0].matching_acls] == [2]
            described = await connection.call(replace(DESCRIBE, principal_filter="User:alice"))
            assert [one.resource_type for one in described.resources] == [3]

    run(scenario)


def test_only_who_may_sees_and_changes_them() -> None:
    async def scenario() -> None:
        properties = {**AUTHORIZER, "super_users": "User:admin"}
        async with World(**properties).running() as (_, connection):
            described: Any = await connection.call(DESCRIBE)
            assert described.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            created: Any = await connection.call(CreateAclsRequest(creations=(ACL, ACL)))
            assert [one.error_code for one in created.results] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2
            deleted: Any = await connection.call(DeleteAclsRequest(filters=(FILTER,)))
            assert [one.error_code for one in deleted.filter_results] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]

    run(scenario)
