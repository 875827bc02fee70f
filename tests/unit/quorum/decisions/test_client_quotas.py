"""AlterClientQuotas: what a quota may be for, and its values (KIP-546, KIP-599, KIP-612)."""

from typing import Any, cast

import pytest
from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kio.static.primitive import f64
from metadata_cluster import Cluster

from penstock.protocol.errors import ErrorCode
from penstock.quorum.decisions.client_quotas import alter_client_quotas

RATE = "producer_byte_rate"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def entry(entity: dict[str, str | None], *changes: tuple[str, float | None]) -> EntryData:
    return EntryData(
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()),
        ops=tuple(OpData(key=key, value=f64(value or 0.0), remove=value is None) for key, value in changes),
    )


def request(*entries: EntryData, validate_only: bool = False) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(entries=entries, validate_only=validate_only)


def outcome(cluster: Cluster, entity: dict[str, str | None], *changes: tuple[str, float | None]) -> str | None:
    """The sentence of a refusal; None when it was done."""
    response: Any = cluster.submit(alter_client_quotas, request(entry(entity, *changes)))
    (answer,) = response.entries
    assert answer.error_code == (ErrorCode.NONE if answer.error_message is None else ErrorCode.INVALID_REQUEST)
    message: str | None = answer.error_message
    return message


def test_quotas_are_set_changed_and_removed(cluster: Cluster) -> None:
    entity = (("client-id", None), ("user", "alice"))
    named: dict[str, str | None] = {"user": "alice", "client-id": None}
    assert outcome(cluster, named, (RATE, 1000.0), ("request_percentage", 0.5)) is None
    assert outcome(cluster, named, (RATE, 2000.0)) is None
    assert cluster.image.client_quotas[entity] == {RATE: 2000.0, "request_percentage": 0.5}
    assert outcome(cluster, named, (RATE, None), ("request_percentage", None)) is None
    assert entity not in cluster.image.client_quotas


def test_what_is_so_already_is_no_record(cluster: Cluster) -> None:
    cluster.submit(alter_client_quotas, request(entry({"user": "alice"}, (RATE, 5.0))))
    again = request(entry({"user": "alice"}, (RATE, 5.0), ("consumer_byte_rate", None)))
    assert cluster.decide(alter_client_quotas, again).records == ()


def test_validation_changes_nothing(cluster: Cluster) -> None:
    checked = cluster.decide(alter_client_quotas, request(entry({"user": "a"}, (RATE, 5.0)), validate_only=True))
    assert checked.records == ()
    assert int(checked.response.entries[0].error_code) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("entity", "message"),
    [
        ({}, "Invalid empty client quota entity"),
        ({"user": ""}, "Empty user not supported"),
        ({"group": "g"}, "Unhandled client quota entity type: group"),
        (
            {"ip": "10.0.0.1", "user": "a"},
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
        ({"ip": "not an address"}, "not an address is not a valid IP or resolvable host."),
    ],
    ids=str,
)
def test_entities_that_cannot_have_a_quota(cluster: Cluster, entity: dict[str, str | None], message: str) -> None:
    assert outcome(cluster, entity, (RATE, 1.0)) == message


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("bytes", 1.0, "Invalid configuration key bytes"),
        ("connection_creation_rate", 1.0, "Invalid configuration key connection_creation_rate"),
        (RATE, 0.0, f"Quota {RATE} must be greater than 0"),
        (RATE, float("nan"), f"Quota {RATE} must be greater than 0"),
        ("request_percentage", float("inf"), "Quota request_percentage must be greater than 0"),
        (RATE, 1.5, f"{RATE} cannot be a fractional value."),
        (RATE, 1e19, f"Proposed value for {RATE} is too large for a LONG."),
    ],
)
def test_values_that_are_no_quota(cluster: Cluster, key: str, value: float, message: str) -> None:
    changed = request(
        EntryData(
            entity=(EntityData(entity_type="user", entity_name="a"),),
            ops=(OpData(key=key, value=cast(f64, value), remove=False),),
        )
    )
    response: Any = cluster.submit(alter_client_quotas, changed)
    assert response.entries[0].error_message == message
    assert not cluster.image.client_quotas


def test_addresses_have_a_rate_of_connections_alone(cluster: Cluster) -> None:
    assert outcome(cluster, {"ip": None}, ("connection_creation_rate", 10.0)) is None
    assert outcome(cluster, {"ip": "::1"}, ("connection_creation_rate", 10.0)) is None
    assert outcome(cluster, {"ip": "::1"}, (RATE, 10.0)) == f"Invalid configuration key {RATE}"
    too_large = "Proposed value for connection_creation_rate is too large for an INT."
    assert outcome(cluster, {"ip": "::1"}, ("connection_creation_rate", 2.0**31)) == too_large


def test_an_entity_or_key_that_is_named_twice_is_refused_and_others_are_not(cluster: Cluster) -> None:
    alice, bob = entry({"user": "alice"}, (RATE, 1.0)), entry({"user": "bob"}, (RATE, 1.0), (RATE, 2.0))
    response: Any = cluster.submit(alter_client_quotas, request(alice, alice, bob, entry({"user": "c"}, (RATE, 1.0))))
    assert [(one.entity[0].entity_name, one.error_message) for one in response.entries] == [
        ("alice", "Ignoring duplicate entity ClientQuotaEntity(entries={user=alice})"),
        ("bob", "Ignoring duplicate entity ClientQuotaEntity(entries={user=bob})"),
        ("c", None),
    ]
