"""Quotas of clients under the names that Prometheus' JMX exporter gives Kafka's."""

from __future__ import annotations

from penstock.broker.metrics.rules import quota_metrics as metrics
from penstock.broker.metrics.rules.quota_reader import SENSORS_MAX, QuotaReader
from penstock.broker.timing.rules.rate_sensors import RateSensors
from penstock.quorum.metadata.quota_precedence import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    QuotaClients,
)


def test_rates_and_throttle_times_are_told_of_a_bounded_number_of_clients() -> None:
    sensors: dict[str, RateSensors[QuotaClients]] = {
        key: RateSensors(sample_count=11, window_ms=1000)
        for key in (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
    }
    alice = QuotaClients("alice", "")
    for key in (PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE):
        sensor = sensors[key].sensor(alice, 1.0, 0)
        sensor.record(1000, 0)
        sensor.note_throttle(500, 0)
    for number in range(SENSORS_MAX + 5):
        sensors[CONSUMER_BYTE_RATE].sensor(QuotaClients("", str(number)), 1.0, 0)
    readings = {one.metric: dict(one.samples) for one in QuotaReader(sensors, lambda: 0)() if one is not None}
    assert readings[metrics.BYTE_RATE]["Produce", "alice", ""] == 100
    assert readings[metrics.REQUEST_TIME] == {("Request", "alice", ""): 100}
    assert readings[metrics.MUTATION_RATE] == {("ControllerMutation", "alice", ""): 100}
    assert readings[metrics.TOKENS] == {("ControllerMutation", "alice", ""): 11}
    assert readings[metrics.THROTTLE_TIME]["Produce", "alice", ""] == 500
    assert readings[metrics.THROTTLE_TIME]["Fetch", "", "0"] == 0
    assert sum(labels[0] == "Fetch" for labels in readings[metrics.BYTE_RATE]) == SENSORS_MAX
    assert metrics.BYTE_RATE.name == "kafka_server_quota_byte_rate"
