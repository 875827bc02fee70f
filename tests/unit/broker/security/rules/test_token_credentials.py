"""Delegation tokens as credentials of SCRAM (KIP-48)."""

from __future__ import annotations

import base64

import pytest

from penstock.broker.security.rules.sasl_mechanisms import CredentialSources
from penstock.protocol.scram import SCRAM_SHA_256, SCRAM_SHA_512, ScramMechanism
from penstock.protocol.structs import replace
from penstock.quorum.metadata.image import EMPTY_IMAGE
from penstock.quorum.metadata.persistent_map import PersistentMap
from penstock.quorum.metadata.security_image import DelegationToken
from penstock.quorum.permissions.token_settings import DelegationTokenConfig
from penstock.quorum.permissions.tokens import hmac_of

TOKEN = DelegationToken(
    token_id="t1",
    owner="User:alice",
    requester="User:bob",
    renewers=(),
    issue_timestamp_ms=0,
    max_timestamp_ms=900,
    expiration_timestamp_ms=500,
)
CONFIG = DelegationTokenConfig(secret_key=b"key", max_lifetime_ms=1, expiry_time_ms=1, check_interval_ms=1)
IMAGE = replace(EMPTY_IMAGE, delegation_tokens=PersistentMap({"t1": TOKEN}))


def sources(now_ms: int = 0, config: DelegationTokenConfig | None = CONFIG) -> CredentialSources:
    return CredentialSources(
        image=lambda: IMAGE, random_bytes=lambda count: bytes(count), wall_clock_ms=lambda: now_ms, tokens=config
    )


@pytest.mark.parametrize("mechanism", [SCRAM_SHA_256, SCRAM_SHA_512])
def test_the_password_of_a_token_is_its_hmac(mechanism: ScramMechanism) -> None:
    found = sources().find_scram(mechanism, "t1", True)
    assert found is not None
    assert (found.principal, found.is_by_token, found.expiry_ms) == ("User:alice", True, 500)
    password = base64.b64encode(hmac_of(b"key", "t1")).decode()
    salted = mechanism.salted_password(password, found.credential.salt, found.credential.iterations)
    assert found.credential.stored_key == mechanism.stored_key(salted)
    assert found.credential.server_key == mechanism.server_key(salted)
    # Each node comes to the same.
    assert sources().find_scram(mechanism, "t1", True) == found


def test_only_living_tokens_are_found_and_only_as_tokens() -> None:
    assert sources(500).find_scram(SCRAM_SHA_256, "t1", True) is not None
    assert sources(501).find_scram(SCRAM_SHA_256, "t1", True) is None
    assert sources().find_scram(SCRAM_SHA_256, "t2", True) is None
    assert sources().find_scram(SCRAM_SHA_256, "t1", False) is None
    assert sources(config=None).find_scram(SCRAM_SHA_256, "t1", True) is None
