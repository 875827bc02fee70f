"""The most specific quota counts: Kafka's order of the eight kinds of entity (KIP-55, KIP-546)."""

from itertools import combinations

import pytest

from penstock.quorum.metadata.quota_precedence import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    AppliedQuota,
    QuotaClients,
    address_quotas,
    applied_quota,
    has_quota_of_clients,
)
from penstock.quorum.metadata.security_image import QuotaEntity

BOTH, USER, CLIENT = QuotaClients("alice", "app"), QuotaClients("alice", ""), QuotaClients("", "app")
LEVELS: tuple[tuple[QuotaEntity, QuotaClients], ...] = (
    ((("client-id", "app"), ("user", "alice")), BOTH),
    ((("client-id", None), ("user", "alice")), BOTH),
    ((("user", "alice"),), USER),
    ((("client-id", "app"), ("user", None)), BOTH),
    ((("client-id", None), ("user", None)), BOTH),
    ((("user", None),), USER),
    ((("client-id", "app"),), CLIENT),
    ((("client-id", None),), CLIENT),
)


@pytest.mark.parametrize("chosen", [*combinations(range(8), 1), *combinations(range(8), 2), tuple(range(8))])
def test_the_first_level_with_a_quota_decides(chosen: tuple[int, ...]) -> None:
    quotas = {LEVELS[level][0]: {PRODUCER_BYTE_RATE: float(level + 1)} for level in reversed(chosen)}
    found = applied_quota(quotas, PRODUCER_BYTE_RATE, "alice", "app")
    assert found == AppliedQuota(chosen[0] + 1, LEVELS[chosen[0]][1])


def test_each_key_is_looked_for_by_itself() -> None:
    quotas = {LEVELS[0][0]: {PRODUCER_BYTE_RATE: 1.0}, LEVELS[5][0]: {CONSUMER_BYTE_RATE: 2.0}}
    assert applied_quota(quotas, CONSUMER_BYTE_RATE, "alice", "app") == AppliedQuota(2.0, USER)
    assert applied_quota(quotas, PRODUCER_BYTE_RATE, "bob", "app") is None


@pytest.mark.parametrize("client_id", [None, ""])
def test_without_a_client_id_the_user_alone_counts(client_id: str | None) -> None:
    quotas = {entity: {PRODUCER_BYTE_RATE: float(level)} for level, (entity, _) in enumerate(LEVELS)}
    assert applied_quota(quotas, PRODUCER_BYTE_RATE, "alice", client_id) == AppliedQuota(2, USER)
    assert applied_quota(quotas, PRODUCER_BYTE_RATE, "bob", client_id) == AppliedQuota(5, QuotaClients("bob", ""))
    of_clients = {LEVELS[7][0]: {PRODUCER_BYTE_RATE: 7.0}}
    assert applied_quota(of_clients, PRODUCER_BYTE_RATE, "alice", client_id) is None


def test_addresses_have_one_spelling() -> None:
    quotas: dict[QuotaEntity, dict[str, float]] = {
        (("ip", "2001:DB8:0::1"),): {CONNECTION_CREATION_RATE: 5.0},
        (("ip", None),): {CONNECTION_CREATION_RATE: 9.0},
    }
    assert address_quotas(quotas) == {"2001:db8::1": 5.0, None: 9.0}
    assert not has_quota_of_clients(quotas)
    assert has_quota_of_clients({**quotas, LEVELS[7][0]: {}})


def test_an_address_of_ipv4_that_is_mapped_is_that_of_ipv4() -> None:
    assert address_quotas({(("ip", "::ffff:10.0.0.1"),): {"connection_creation_rate": 5.0}}) == {"10.0.0.1": 5.0}
