"""Client metrics subscriptions and what a client is asked for (KIP-714)."""

from uuid import UUID

import pytest

from penstock.broker.telemetry.rules.subscriptions import (
    ClientDetails,
    Selection,
    Subscription,
    read_subscription,
    select,
)
from penstock.protocol.structs import replace

CLIENT = ClientDetails(
    client_instance_id=UUID(int=7),
    client_id="shop-1",
    client_software_name="librdkafka",
    client_software_version="2.12.1",
    client_source_address="10.0.0.7",
    client_source_port=4711,
)


def subscription(**values: str) -> Subscription:
    found = read_subscription({name.replace("_", "."): value for name, value in values.items()})
    assert found is not None
    return found


def test_a_client_without_a_subscription_is_asked_for_nothing_every_five_minutes() -> None:
    assert select((), CLIENT) == Selection(metrics=(), interval_ms=300_000)


def test_subscriptions_of_a_client_are_joined_at_the_shortest_interval() -> None:
    first = subscription(metrics="org.b,org.a", interval_ms="60000")
    second = subscription(metrics="org.b,org.c", interval_ms="1000")
    assert select((first, second), CLIENT) == Selection(metrics=("org.a", "org.b", "org.c"), interval_ms=1000)


def test_all_metrics_include_every_other() -> None:
    assert select((subscription(metrics="*"), subscription(metrics="org.a")), CLIENT).metrics == ("*",)


@pytest.mark.parametrize(
    ("match", "is_match"),
    [
        ("client_id=shop-.*", True),
        # The whole value, as Java's `matches`.
        ("client_id=shop", False),
        ("client_software_name=librdkafka, client_software_version=2\\.12\\..*", True),
        ("client_software_name=librdkafka,client_software_version=1.*", False),
        ("client_source_address=10\\.0\\.0\\.7,client_source_port=4711", True),
        ("client_instance_id=00000000-0000-0000-0000-000000000007", True),
    ],
)
def test_a_client_must_match_every_pattern(match: str, is_match: bool) -> None:
    assert subscription(metrics="*", match=match).is_match(CLIENT) is is_match


def test_an_expression_that_re2_cannot_read_is_no_subscription() -> None:
    assert read_subscription({"metrics": "*", "match": "client_id=(?=a)"}) is None


def test_a_prefix_of_its_name_asks_for_a_metric() -> None:
    selection = Selection(metrics=("org.apache.kafka.producer.",), interval_ms=1000)
    assert selection.includes("org.apache.kafka.producer.record.count")
    assert not selection.includes("org.apache.kafka.consumer.record.count")
    assert Selection(metrics=("",), interval_ms=1000).includes("anything")


def test_the_subscription_id_changes_with_client_metrics_and_interval() -> None:
    selection = Selection(metrics=("org.a",), interval_ms=1000)
    ids = {
        selection.id_for(UUID(int=1)),
        selection.id_for(UUID(int=2)),
        replace(selection, interval_ms=2000).id_for(UUID(int=1)),
        replace(selection, metrics=("org.b",)).id_for(UUID(int=1)),
    }
    assert len(ids) == 4
    assert all(-(2**31) <= number < 2**31 for number in ids)
    assert selection.id_for(UUID(int=2**128 - 1)) == Selection(metrics=("org.a",), interval_ms=1000).id_for(
        UUID(int=2**128 - 1)
    )
