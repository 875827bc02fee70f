"""The four APIs of delegation tokens of a node: who may ask, who sees which token."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from authorized_node import ALICE, AuthorizedNode, authorized_node
from kio.schema.create_delegation_token.v3.request import CreatableRenewers, CreateDelegationTokenRequest
from kio.schema.describe_delegation_token.v3.request import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kio.schema.expire_delegation_token.v2.request import ExpireDelegationTokenRequest
from kio.schema.renew_delegation_token.v2.request import RenewDelegationTokenRequest
from kio.static.primitive import i64Timedelta
from memory_node import run

from penstock.protocol.acls import AclOperation, ResourceType
from penstock.protocol.errors import ErrorCode

SPAN = i64Timedelta.parse(timedelta(milliseconds=-1))
CREATION = CreateDelegationTokenRequest(
    owner_principal_type=None,
    owner_principal_name=None,
    renewers=(CreatableRenewers(principal_type="User", principal_name="renewer"),),
    max_lifetime=SPAN,
)
ALL_TOKENS = DescribeDelegationTokenRequest(owners=None)
KEY = {"delegation_token_secret_key": "key of tokens"}


async def seen(node: AuthorizedNode, principal: str, request: DescribeDelegationTokenRequest = ALL_TOKENS) -> list[str]:
    answer: Any = await node.ask(request, principal)
    assert answer.error_code == ErrorCode.NONE
    return [token.token_id for token in answer.tokens]


def test_a_token_lives_and_ends() -> None:
    async def scenario() -> None:
        async with authorized_node(**KEY) as node:
            token = await node.ask(CREATION)
            assert (token.error_code, token.principal_name) == (ErrorCode.NONE, "alice")
            described = (await node.ask(ALL_TOKENS)).tokens[0]
            assert (described.token_id, described.hmac) == (token.token_id, token.hmac)
            assert [renewer.principal_name for renewer in described.renewers] == ["renewer"]
            renewal = RenewDelegationTokenRequest(hmac=token.hmac, renew_period=SPAN)
            assert (await node.ask(renewal, "User:renewer")).error_code == ErrorCode.NONE
            mismatch = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
            assert (await node.ask(renewal, "User:bob")).error_code == mismatch
            unknown = await node.ask(replace(renewal, hmac=b"x"))
            assert unknown.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
            end = ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period=SPAN)
            assert (await node.ask(end, "User:bob")).error_code == mismatch
            assert (await node.ask(end)).error_code == ErrorCode.NONE
            assert await seen(node, ALICE) == []

    run(scenario)


def test_tokens_are_shown_to_those_who_may_see_them() -> None:
    async def scenario() -> None:
        async with authorized_node(**KEY) as node:
            mine = (await node.ask(CREATION)).token_id
            other = (await node.ask(CREATION, "User:bob")).token_id
            assert await seen(node, ALICE) == [mine]
            assert await seen(node, "User:renewer") == sorted([mine, other])
            assert await seen(node, "User:admin") == sorted([mine, other])
            assert await seen(node, "User:carol") == []
            await node.allow(ResourceType.DELEGATION_TOKEN, mine, AclOperation.DESCRIBE, principal="User:carol")
            await node.allow(ResourceType.USER, "User:bob", AclOperation.DESCRIBE_TOKENS, principal="User:carol")
            assert await seen(node, "User:carol") == sorted([mine, other])
            bob = DescribeDelegationTokenOwner(principal_type="User", principal_name="bob")
            assert await seen(node, "User:admin", DescribeDelegationTokenRequest(owners=(bob,))) == [other]
            assert await seen(node, "User:admin", DescribeDelegationTokenRequest(owners=())) == []

    run(scenario)


def test_tokens_of_others_need_a_permission() -> None:
    async def scenario() -> None:
        async with authorized_node(**KEY) as node:
            request = replace(CREATION, owner_principal_type="User", owner_principal_name="bob")
            denied = await node.ask(request)
            assert denied.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
            assert (denied.principal_name, denied.token_requester_principal_name) == ("bob", "alice")
            await node.allow(ResourceType.USER, "User:bob", AclOperation.CREATE_TOKENS)
            token = await node.ask(request)
            assert (token.error_code, token.principal_name) == (ErrorCode.NONE, "bob")

    run(scenario)


def test_who_has_proved_nothing_and_who_has_a_token_gets_none() -> None:
    async def scenario() -> None:
        async with authorized_node(**KEY) as node:
            requests = (
                CREATION,
                RenewDelegationTokenRequest(hmac=b"x", renew_period=SPAN),
                ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period=SPAN),
                ALL_TOKENS,
            )
            by_token = replace(node.client(), is_token_authenticated=True)
            for request in requests:
                answers: list[Any] = [await node.connection.call(request), await node.ask_as(request, by_token)]
                codes = [answer.error_code for answer in answers]
                assert codes == [ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED] * 2
        async with authorized_node() as node:
            for request in requests:
                answer = await node.ask(request)
                assert answer.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED

    run(scenario)
