"""Quotas of clients on one broker: whose they are, what they count, and what follows (KIP-13, KIP-124, KIP-219)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from penstock.broker.network.request import RequestContext
from penstock.broker.network.rules.connection_rates import ConnectionRates
from penstock.broker.quotas.client_quotas import UNLIMITED_BYTES, ClientQuotas, LimitedClient
from penstock.protocol.ids import NodeId
from penstock.quorum.metadata.quota_precedence import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from penstock.quorum.metadata.security_image import QuotaEntity

ALICE: QuotaEntity = (("user", "alice"),)
APP: QuotaEntity = (("client-id", "app"),)
CONTEXT = RequestContext(listener_name="PLAINTEXT", peer_host="10.0.0.1", client_id="app", principal="User:alice")


class Broker:
    def __init__(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        self.now_ms = 0
        self.refreshed = 0
        self.quotas = ClientQuotas(sample_count=11, window_ms=1000, time_s=lambda: self.now_ms / 1000)
        self.rates = ConnectionRates()
        self.quotas.attach(self._refresh, self.rates)
        self.quotas.set_quotas(quotas)

    def _refresh(self) -> None:
        self.refreshed += 1

    def client(self, context: RequestContext = CONTEXT) -> LimitedClient:
        found = self.quotas.find(context)
        assert found is not None
        return found


def test_a_client_without_a_quota_has_none() -> None:
    broker = Broker({})
    assert broker.quotas.find(CONTEXT) is None
    assert broker.refreshed == 0
    broker.quotas.set_quotas({(("user", "bob"),): {PRODUCER_BYTE_RATE: 1.0}})
    assert broker.quotas.find(CONTEXT) is None
    assert broker.refreshed == 1


def test_nodes_have_no_quota() -> None:
    broker = Broker({(("user", None),): {PRODUCER_BYTE_RATE: 1.0}})
    assert broker.quotas.find(replace(CONTEXT, node_id=NodeId(2))) is None
    assert broker.quotas.find(CONTEXT) is not None


def test_a_client_that_proved_nothing_is_user_anonymous() -> None:
    broker = Broker({(("user", "ANONYMOUS"),): {PRODUCER_BYTE_RATE: 1.0}})
    assert broker.quotas.find(replace(CONTEXT, principal="User:ANONYMOUS")) is not None
    assert broker.quotas.find(CONTEXT) is None


def test_a_name_with_a_colon_is_whole() -> None:
    broker = Broker({(("user", "a:b"),): {PRODUCER_BYTE_RATE: 1.0}})
    assert broker.quotas.find(replace(CONTEXT, principal="User:a:b")) is not None


def test_produced_bytes_are_throttled_above_the_rate_and_acks_0_is_too() -> None:
    client = Broker({ALICE: {PRODUCER_BYTE_RATE: 100.0}}).client()
    assert client.on_produced(1000) == 0
    assert client.on_produced(100) == 1000
    assert client.on_unanswered(100) == 2000
    assert client.on_fetched(1_000_000) == 0


def test_a_throttled_fetch_is_not_counted() -> None:
    broker = Broker({ALICE: {CONSUMER_BYTE_RATE: 100.0}})
    client = broker.client()
    assert client.on_fetched(1000) == 0
    # A sample's worth more: the batch at the limit.
    assert client.on_fetched(100) == 0
    assert client.on_fetched(100) == 1000
    assert client.on_fetched(100) == 1000
    broker.now_ms = 11_000
    assert client.on_fetched(100) == 0


def test_a_batch_larger_than_the_window_is_sent_once_and_then_waited_for() -> None:
    broker = Broker({ALICE: {CONSUMER_BYTE_RATE: 100.0}})
    client = broker.client()
    assert client.on_fetched(5000) == 0
    assert client.on_fetched(5000) == 40_000
    broker.now_ms = 11_000
    assert client.on_fetched(5000) == 0


def test_a_fetch_has_no_more_than_is_left_of_the_window() -> None:
    """At first what Kafka's ClientQuotaManager.getMaxValueInQuotaWindow is."""
    client = Broker({ALICE: {CONSUMER_BYTE_RATE: 100.0}}).client()
    assert client.fetch_bytes_max() == 1000
    client.on_fetched(400)
    assert client.fetch_bytes_max() == 600
    client.on_fetched(650)
    assert client.fetch_bytes_max() == 1
    assert Broker({ALICE: {CONSUMER_BYTE_RATE: 1e15}}).client().fetch_bytes_max() == UNLIMITED_BYTES
    assert Broker({ALICE: {PRODUCER_BYTE_RATE: 1.0}}).client().fetch_bytes_max() == UNLIMITED_BYTES


def test_consumers_that_fetch_at_once_do_not_all_get_what_is_left() -> None:
    broker = Broker({ALICE: {CONSUMER_BYTE_RATE: 100.0}})
    one, other = broker.client(), broker.client(replace(CONTEXT, client_id="other"))
    assert one.fetch_bytes_max() == other.fetch_bytes_max() == 1000
    assert one.on_fetched(900) == 0
    assert other.on_fetched(900) == 8000
    assert other.on_fetched(100) == 0


@pytest.mark.parametrize("batch_bytes", [1, 20])
@pytest.mark.parametrize("response_bytes", [20, 100, 2000])
def test_a_consumer_that_waits_as_it_is_told_settles_at_its_quota(batch_bytes: int, response_bytes: int) -> None:
    """Virtual time: within 5 % of the quota over many windows, however large its responses may be."""
    broker = Broker({ALICE: {CONSUMER_BYTE_RATE: 100.0}})
    client = broker.client()
    from_ms, until_ms = 33_000, 363_000
    received = 0
    while broker.now_ms < until_ms:
        size = max(min(response_bytes, client.fetch_bytes_max()) // batch_bytes * batch_bytes, batch_bytes)
        throttle_ms = client.on_fetched(size)
        if not throttle_ms and broker.now_ms >= from_ms:
            received += size
        broker.now_ms += throttle_ms + 1
    assert received == pytest.approx(100 * (until_ms - from_ms) / 1000, rel=0.05)


def test_request_time_counts_from_the_next_response_and_waits_a_sample_at_most() -> None:
    client = Broker({ALICE: {REQUEST_PERCENTAGE: 10.0}}).client()
    assert client.on_answered(0) == 0
    client.on_handled(1.05)
    assert client.on_answered(0) == 500
    client.on_handled(100.0)
    assert client.on_answered(0) == 1000
    assert client.on_produced(1) == 1000
    # A response that is not sent tells of nothing (Kafka: acks=0 is exempt).
    assert client.on_unanswered(1) == 0


def test_of_several_throttle_times_the_longest_counts() -> None:
    client = Broker({ALICE: {REQUEST_PERCENTAGE: 10.0, CONSUMER_BYTE_RATE: 100.0, PRODUCER_BYTE_RATE: 100.0}}).client()
    client.on_handled(1.05)
    assert client.on_produced(1100) == 1000
    assert client.on_fetched(1010) == 500
    # The fetch was not counted, as its response has no records.
    assert client.on_fetched(1000) == 500
    assert client.on_answered(700) == 700
    assert client.on_answered(300) == 500


def test_clients_of_a_user_share_its_quota_and_those_of_a_client_id_do_not() -> None:
    broker = Broker({ALICE: {PRODUCER_BYTE_RATE: 100.0}, (("client-id", None),): {PRODUCER_BYTE_RATE: 100.0}})
    one, other = broker.client(), broker.client(replace(CONTEXT, client_id="other"))
    assert one.on_produced(1000) == 0
    assert other.on_produced(100) == 1000
    bob, bobs_other = (
        broker.client(replace(CONTEXT, principal="User:bob", client_id=client_id)) for client_id in ("x", "y")
    )
    assert bob.on_produced(1000) == 0
    assert bobs_other.on_produced(1000) == 0


def test_a_change_of_quotas_makes_new_decisions_on_what_was_counted() -> None:
    broker = Broker({ALICE: {PRODUCER_BYTE_RATE: 100.0}})
    before = broker.client()
    before.on_produced(1000)
    broker.quotas.set_quotas({ALICE: {PRODUCER_BYTE_RATE: 50.0}})
    assert broker.refreshed == 2
    assert broker.client() is not before
    assert broker.client().on_produced(100) == 12_000
    broker.quotas.set_quotas({ALICE: {PRODUCER_BYTE_RATE: 1e9}})
    assert broker.client().on_produced(100) == 0


def test_a_dropped_sensor_is_made_again() -> None:
    broker = Broker({ALICE: {PRODUCER_BYTE_RATE: 100.0}})
    client = broker.client()
    client.on_produced(1000)
    hour_ms = 3_600_000
    for number in range(3):
        broker.now_ms = (number + 1) * hour_ms
        broker.quotas.sensors[PRODUCER_BYTE_RATE].sensor(("x", str(number)), 1.0, broker.now_ms)  # type: ignore[arg-type]
    assert len(broker.quotas.sensors[PRODUCER_BYTE_RATE]) == 1
    client.on_produced(1100)
    assert len(broker.quotas.sensors[PRODUCER_BYTE_RATE]) == 2
    assert client.on_produced(0) == 1000


def test_addresses_have_their_rate_of_connections() -> None:
    broker = Broker({(("ip", "10.0.0.1"),): {"connection_creation_rate": 1.0}})
    outcomes = [broker.rates.on_connection("10.0.0.1", "PLAINTEXT", 0) for _ in range(11)]
    assert [outcome is None for outcome in outcomes] == [True] * 10 + [False]
    assert broker.quotas.find(CONTEXT) is None
    assert broker.rates.on_connection("10.0.0.2", "PLAINTEXT", 0) is None


@pytest.mark.parametrize("client_id", [None, ""])
def test_a_client_without_an_id_has_the_quota_of_its_user(client_id: str | None) -> None:
    broker = Broker({ALICE: {PRODUCER_BYTE_RATE: 100.0}, APP: {PRODUCER_BYTE_RATE: 1.0}})
    assert broker.quotas.find(replace(CONTEXT, client_id=client_id)) is not None
    assert broker.quotas.find(replace(CONTEXT, principal="User:bob", client_id=client_id)) is None


def test_a_client_with_a_quota_of_changes_waits_as_the_controller_says_and_counts_nothing() -> None:
    broker = Broker({ALICE: {CONTROLLER_MUTATION_RATE: 1.0}})
    client = broker.client()
    assert [client.on_answered(time_ms) for time_ms in (0, 700)] == [0, 700]
    assert client.on_produced(1000) == client.on_fetched(1000) == 0
    assert [len(sensors) for sensors in broker.quotas.sensors.values()] == [0, 0, 0, 0]


def test_who_attaches_later_has_the_rates_of_addresses_too() -> None:
    broker = Broker({(("ip", None),): {"connection_creation_rate": 1.0}})
    rates = ConnectionRates()
    broker.quotas.attach(broker._refresh, rates)
    assert [rates.on_connection("10.0.0.1", "PLAINTEXT", 0) is None for _ in range(11)] == [True] * 10 + [False]


def test_a_request_that_is_older_than_a_change_does_not_bring_the_earlier_bound_back() -> None:
    """Its sensor was dropped while it waited: the one in its place has the bound that holds by then."""
    broker = Broker({ALICE: {PRODUCER_BYTE_RATE: 100.0}})
    waiting = broker.client()
    sensors = broker.quotas.sensors[PRODUCER_BYTE_RATE]
    for _, sensor in sensors:
        sensor.drop()
    sensors._sensors.clear()
    broker.quotas.set_quotas({ALICE: {PRODUCER_BYTE_RATE: 1000.0}})
    assert waiting.on_produced(1_000) == 0
    assert [sensor.bound for _, sensor in sensors] == [1000.0]
    assert broker.client().on_produced(9_000) == 0


def test_a_request_that_waited_through_changes_is_answered_by_the_quota_that_holds_then() -> None:
    broker = Broker({ALICE: {PRODUCER_BYTE_RATE: 100.0, CONSUMER_BYTE_RATE: 100.0, REQUEST_PERCENTAGE: 100.0}})
    waiting = broker.client()
    waiting.on_handled(20.0)
    broker.quotas.set_quotas({ALICE: {PRODUCER_BYTE_RATE: 1.0}})
    broker.quotas.set_quotas({ALICE: {PRODUCER_BYTE_RATE: 200.0}})
    assert waiting.on_produced(2_200) == 1_000
    assert waiting.on_answered(0) == 0
    assert waiting.on_fetched(1_000_000) == 0
    broker.quotas.set_quotas({})
    assert waiting.on_unanswered(1_000_000) == 0
