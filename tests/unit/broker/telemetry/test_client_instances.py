"""When a client instance may ask and push, and which instances are known (KIP-714)."""

from uuid import UUID

import pytest

from penstock.broker.telemetry.rules.client_instance import ClientInstance
from penstock.broker.telemetry.rules.client_instances import ClientInstances
from penstock.broker.telemetry.rules.subscriptions import ClientDetails, Subscription
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.structs import replace

INTERVAL_MS = 10_000
ASKS = Subscription(metrics=("org.",), interval_ms=INTERVAL_MS, matches=())
CLIENT = ClientDetails(
    client_instance_id=UUID(int=7),
    client_id="a",
    client_software_name="b",
    client_software_version="c",
    client_source_address="d",
    client_source_port=1,
)


def instances(instances_max: int = 10) -> ClientInstances:
    made = ClientInstances(instances_max)
    made.subscribe((ASKS,))
    return made


def used(known: ClientInstances, now_ms: int, *, number: int = 7, connection: int = 1) -> ClientInstance:
    return known.use(replace(CLIENT, client_instance_id=UUID(int=number)), connection, now_ms)


def push(
    instance: ClientInstance,
    now_ms: int,
    *,
    subscription_id: int | None = None,
    is_terminating: bool = False,
    compression: int = 0,
    size: int = 10,
) -> ErrorCode:
    try:
        instance.admit_push(
            now_ms,
            subscription_id=instance.subscription_id if subscription_id is None else subscription_id,
            is_terminating=is_terminating,
            compression=compression,
            size=size,
            size_max=100,
        )
    except KafkaError as error:
        instance.finish(error.code)
        return error.code
    instance.finish(ErrorCode.NONE)
    return ErrorCode.NONE


def get(instance: ClientInstance, now_ms: int) -> ErrorCode:
    try:
        instance.admit_get(now_ms)
    except KafkaError as error:
        return error.code
    instance.finish(ErrorCode.NONE)
    return ErrorCode.NONE


def test_a_second_get_waits_for_the_interval() -> None:
    instance = used(instances(), 0)
    assert get(instance, 0) is ErrorCode.NONE
    assert get(instance, INTERVAL_MS - 1) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert get(instance, INTERVAL_MS) is ErrorCode.NONE


def test_the_first_push_after_a_get_comes_when_it_likes_and_the_next_after_the_interval() -> None:
    instance = used(instances(), 0)
    assert get(instance, 0) is ErrorCode.NONE
    # At once: the jitter of a client is a part of the interval.
    assert push(instance, 5) is ErrorCode.NONE
    assert push(instance, INTERVAL_MS) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(instance, INTERVAL_MS + 5) is ErrorCode.NONE


def test_a_push_of_an_unknown_instance_is_taken() -> None:
    """Another broker has answered its GetTelemetrySubscriptions."""
    assert push(used(instances(), 0), 0) is ErrorCode.NONE


def test_a_client_asks_again_at_once_after_an_unknown_subscription_id() -> None:
    instance = used(instances(), 0)
    assert get(instance, 0) is ErrorCode.NONE
    assert push(instance, 1, subscription_id=instance.subscription_id + 1) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert get(instance, 2) is ErrorCode.NONE


def test_a_client_asks_again_at_once_after_a_compression_that_is_none() -> None:
    instance = used(instances(), 0)
    assert push(instance, 1, compression=9) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert get(instance, 2) is ErrorCode.NONE


def test_a_push_that_is_too_large_is_refused() -> None:
    assert push(used(instances(), 0), 0, size=100) is ErrorCode.NONE
    assert push(used(instances(), 0), 0, size=101) is ErrorCode.TELEMETRY_TOO_LARGE


def test_a_terminating_push_comes_early_and_is_the_last() -> None:
    instance = used(instances(), 0)
    assert push(instance, 0) is ErrorCode.NONE
    assert push(instance, 1, is_terminating=True) is ErrorCode.NONE
    assert push(instance, 2 * INTERVAL_MS) is ErrorCode.INVALID_REQUEST


def test_new_subscriptions_are_asked_for_at_once() -> None:
    known = instances()
    before = used(known, 0)
    assert get(before, 0) is ErrorCode.NONE
    known.subscribe((ASKS, replace(ASKS, metrics=("com.",))))
    after = used(known, 1)
    assert get(after, 1) is ErrorCode.NONE
    assert after.selection.metrics == ("com.", "org.")
    assert push(after, 2, subscription_id=before.subscription_id) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID


def test_an_instance_ends_with_its_connection() -> None:
    known = instances()
    assert get(used(known, 0), 0) is ErrorCode.NONE
    assert get(used(known, 1), 1) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert get(used(known, 1, connection=2), 1) is ErrorCode.NONE


@pytest.mark.parametrize(("interval_ms", "expiry_ms"), [(1_000, 60_000), (40_000, 120_000)])
def test_an_instance_expires_after_three_intervals_and_at_least_a_minute(interval_ms: int, expiry_ms: int) -> None:
    known = ClientInstances()
    known.subscribe((replace(ASKS, interval_ms=interval_ms),))
    used(known, 0)
    used(known, expiry_ms - 1, number=8)
    assert len(known) == 2
    used(known, expiry_ms, number=9)
    assert UUID(int=7) not in known
    assert len(known) == 2


def test_the_least_recently_used_instance_makes_room() -> None:
    known = instances(2)
    used(known, 0, number=1)
    used(known, 1, number=2)
    used(known, 2, number=1)
    used(known, 3, number=3)
    assert UUID(int=2) not in known
    assert UUID(int=1) in known
    assert len(known) == 2


def test_instances_of_a_connection_that_has_ended_are_forgotten() -> None:
    known = instances()
    moved = used(known, 0, number=1, connection=1)
    used(known, 0, number=2, connection=1)
    kept = used(known, 1, number=1, connection=2)
    assert (known.is_known(moved), known.is_known(kept)) == (False, True)
    assert known.disconnect(1) == (UUID(int=2),)
    assert (len(known), known.is_known(kept)) == (1, True)
    assert known.disconnect(1) == ()
    assert known.disconnect(2) == (UUID(int=1),)
    assert len(known) == 0


def test_an_evicted_instance_is_none_of_its_connection() -> None:
    known = instances(1)
    used(known, 0, number=1, connection=1)
    used(known, 0, number=2, connection=2)
    assert known.disconnect(1) == ()
    assert UUID(int=2) in known
