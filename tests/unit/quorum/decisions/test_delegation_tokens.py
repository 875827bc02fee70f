"""Delegation tokens as the controller creates, renews and ends them."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from kio.schema.create_delegation_token.v3.request import CreatableRenewers, CreateDelegationTokenRequest
from kio.schema.expire_delegation_token.v2.request import ExpireDelegationTokenRequest
from kio.schema.renew_delegation_token.v2.request import RenewDelegationTokenRequest
from kio.static.primitive import i64Timedelta

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import NodeId
from penstock.protocol.structs import replace
from penstock.quorum.decisions.change import replayed
from penstock.quorum.decisions.context import ControllerConfig, ControllerResult, DecisionContext
from penstock.quorum.decisions.delegation_tokens import create_token, expire_token, renew_token
from penstock.quorum.decisions.token_expiry import remove_expired_tokens
from penstock.quorum.metadata.image import EMPTY_IMAGE, MetadataImage
from penstock.quorum.permissions.requester import Requester
from penstock.quorum.permissions.token_settings import DelegationTokenConfig
from penstock.quorum.permissions.tokens import hmac_of

ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"
DAY_MS = 86_400_000
CONFIG = DelegationTokenConfig(
    secret_key=b"secret", max_lifetime_ms=7 * DAY_MS, expiry_time_ms=DAY_MS, check_interval_ms=1
)
NOW_MS = 1_000_000


def span(milliseconds: int) -> i64Timedelta:
    return i64Timedelta.parse(timedelta(milliseconds=milliseconds))


def creation(
    lifetime_ms: int = -1, renewers: tuple[str, ...] = (), owner: str | None = None
) -> CreateDelegationTokenRequest:
    return CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else "User",
        owner_principal_name=owner,
        renewers=tuple(CreatableRenewers(principal_type="User", principal_name=name) for name in renewers),
        max_lifetime=span(lifetime_ms),
    )


class Controller:
    def __init__(self, config: DelegationTokenConfig | None = CONFIG, level: int = 30) -> None:
        self.image: MetadataImage = replace(EMPTY_IMAGE, features={"metadata.version": level})
        self.now_ms = NOW_MS
        self._config = ControllerConfig(node_id=NodeId(1), delegation_tokens=config)
        self._random = Random(1)

    def decide(self, decision: Any, request: Any, principal: str | None = ALICE) -> Any:
        context = DecisionContext(
            next_offset=0,
            random=self._random,
            config=self._config,
            has_live_session=lambda _: False,
            wall_ms=self.now_ms,
            requester=None if principal is None else Requester(principal, "h"),
        )
        result: ControllerResult[Any] = decision(self.image, request, context)
        self.image = replayed(self.image, result.records)
        return result.response

    def refusal(self, decision: Any, request: Any, principal: str | None = ALICE) -> ErrorCode:
        with pytest.raises(KafkaError) as failure:
            self.decide(decision, request, principal)
        return failure.value.code

    def renew(self, secret: bytes, period_ms: int = -1) -> RenewDelegationTokenRequest:
        return RenewDelegationTokenRequest(hmac=secret, renew_period=span(period_ms))

    def expire(self, secret: bytes, period_ms: int) -> ExpireDelegationTokenRequest:
        return ExpireDelegationTokenRequest(hmac=secret, expiry_time_period=span(period_ms))


def milliseconds(time: Any) -> int:
    value: float = time.timestamp() * 1000
    return round(value)


def test_a_token_has_an_owner_and_an_end() -> None:
    controller = Controller()
    token = controller.decide(create_token, creation(renewers=("bob",)))
    assert (token.error_code, token.principal_name, token.token_requester_principal_name) == (0, "alice", "alice")
    assert token.hmac == hmac_of(b"secret", token.token_id)
    assert len(token.hmac) == 64
    times = (token.issue_timestamp, token.expiry_timestamp, token.max_timestamp)
    assert tuple(map(milliseconds, times)) == (NOW_MS, NOW_MS + DAY_MS, NOW_MS + 7 * DAY_MS)
    kept = controller.image.delegation_tokens[token.token_id]
    assert (kept.owner, kept.requester, kept.renewers) == (ALICE, ALICE, (BOB,))
    short = controller.decide(create_token, creation(1_000))
    assert milliseconds(short.max_timestamp) == milliseconds(short.expiry_timestamp) == NOW_MS + 1_000
    for_carol = controller.decide(create_token, creation(8 * DAY_MS, owner="carol"))
    assert (for_carol.principal_name, for_carol.token_requester_principal_name) == ("carol", "alice")
    assert milliseconds(for_carol.max_timestamp) == NOW_MS + 7 * DAY_MS


@pytest.mark.parametrize(
    ("controller", "code"),
    [
        (Controller(None), ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED),
        (Controller(level=13), ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_without_a_key_or_in_an_old_cluster_there_are_none(controller: Controller, code: ErrorCode) -> None:
    answer = controller.decide(create_token, creation(owner="carol"))
    assert (answer.error_code, answer.principal_name, answer.token_requester_principal_name) == (code, "carol", "alice")
    assert (answer.hmac, answer.token_id, milliseconds(answer.max_timestamp)) == (b"", "", -1)
    assert controller.refusal(renew_token, controller.renew(b"")) == code
    assert controller.refusal(expire_token, controller.expire(b"", 0)) == code


def test_renewers_are_users_and_a_node_asks_for_no_token() -> None:
    controller = Controller()
    group = CreatableRenewers(principal_type="Group", principal_name="g")
    answer = controller.decide(create_token, dataclasses.replace(creation(), renewers=(group,)))
    assert answer.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    assert not controller.image.delegation_tokens
    code = controller.refusal(create_token, creation(), principal=None)
    assert code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_owner_and_renewers_put_off_the_end() -> None:
    controller = Controller()
    secret = controller.decide(create_token, creation(3 * DAY_MS, renewers=("bob",))).hmac
    controller.now_ms += DAY_MS // 2

    def renewed(period_ms: int, principal: str) -> int:
        answer = controller.decide(renew_token, controller.renew(secret, period_ms), principal)
        assert answer.error_code == 0
        return milliseconds(answer.expiry_timestamp) - NOW_MS

    assert renewed(-1, ALICE) == DAY_MS // 2 + DAY_MS
    assert renewed(1_000, BOB) == DAY_MS // 2 + 1_000
    assert renewed(9 * DAY_MS, BOB) == DAY_MS // 2 + DAY_MS
    assert controller.refusal(renew_token, controller.renew(secret), CAROL) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert controller.refusal(renew_token, controller.renew(b"x" * 64)) is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    for _ in range(2):
        controller.now_ms += DAY_MS - 1
        renewed(-1, ALICE)
    # Never beyond its lifetime.
    assert renewed(-1, ALICE) == 3 * DAY_MS
    controller.now_ms += 3 * DAY_MS
    assert controller.refusal(renew_token, controller.renew(secret)) is ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert controller.refusal(expire_token, controller.expire(secret, 5)) is ErrorCode.DELEGATION_TOKEN_EXPIRED


def test_a_token_ends_when_it_is_told_to() -> None:
    controller = Controller()
    secret = controller.decide(create_token, creation()).hmac
    assert (
        controller.refusal(expire_token, controller.expire(secret, -1), CAROL)
        is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    )
    answer = controller.decide(expire_token, controller.expire(secret, 5_000))
    assert milliseconds(answer.expiry_timestamp) == NOW_MS + 5_000
    assert controller.image.delegation_tokens
    assert controller.decide(expire_token, controller.expire(secret, -1)).error_code == 0
    assert not controller.image.delegation_tokens


def test_expired_tokens_are_removed() -> None:
    controller = Controller()
    controller.decide(create_token, creation(1_000))
    kept = controller.decide(create_token, creation()).token_id
    assert controller.decide(remove_expired_tokens, None, None) is False
    assert len(controller.image.delegation_tokens) == 2
    controller.now_ms += 1_001
    assert controller.decide(remove_expired_tokens, None, None) is False
    assert list(controller.image.delegation_tokens) == [kept]


def test_the_key_is_in_no_text() -> None:
    assert "secret" not in repr(CONFIG).replace("secret_key", "")
