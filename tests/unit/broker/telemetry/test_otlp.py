"""Reading OpenTelemetry's MetricsData."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric, MetricsData

from penstock.broker.telemetry.rules.client_series import PushedPoint
from penstock.broker.telemetry.rules.otlp import ITEMS_MAX, LABELS_MAX, POINTS_MAX, read_push
from penstock.protocol.errors import CorruptData

DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


def new_message() -> MetricsData:
    message = MetricsData()
    message.resource_metrics.add().scope_metrics.add()
    return message


def add(message: MetricsData, name: str, unit: str = "") -> Metric:
    metric: Metric = message.resource_metrics[0].scope_metrics[0].metrics.add(name=name, unit=unit)
    return metric


def test_sums_and_gauges_are_points() -> None:
    message = new_message()
    counter = add(message, "org.apache.kafka.a", "1")
    counter.sum.is_monotonic = True
    counter.sum.aggregation_temporality = DELTA
    counter.sum.data_points.add(as_int=3).attributes.add(key="node.id").value.int_value = 2
    level = add(message, "org.apache.kafka.b")
    level.sum.aggregation_temporality = CUMULATIVE
    level.sum.data_points.add(as_double=0.5)
    add(message, "org.apache.kafka.c", "ms").gauge.data_points.add(as_double=1.5)
    push = read_push(message.SerializeToString(), lambda _: True)
    assert push.points == (
        PushedPoint(
            name="org_apache_kafka_a_total", labels=(("node_id", "2"),), is_counter=True, is_delta=True, value=3
        ),
        PushedPoint(name="org_apache_kafka_b", labels=(), is_counter=False, is_delta=False, value=0.5),
        PushedPoint(name="org_apache_kafka_c_milliseconds", labels=(), is_counter=False, is_delta=False, value=1.5),
    )
    assert push.dropped == 0


def test_only_what_was_asked_for_is_kept() -> None:
    message = new_message()
    for name in ("org.a", "org.b"):
        add(message, name).gauge.data_points.add(as_int=1)
    push = read_push(message.SerializeToString(), lambda name: name == "org.b")
    assert [point.name for point in push.points] == ["client_org_b"]
    assert push.dropped == 1


def test_histograms_are_counted_as_dropped() -> None:
    message = new_message()
    add(message, "org.a").histogram.data_points.add(count=1)
    add(message, "org.nothing")
    push = read_push(message.SerializeToString(), lambda _: True)
    assert (push.points, push.dropped) == ((), 1)


def test_points_and_labels_are_bounded() -> None:
    message = new_message()
    many = add(message, "org.a").gauge.data_points
    for number in range(POINTS_MAX + 1):
        many.add(as_int=number)
    add(message, "org.b").gauge.data_points.add(as_int=1)
    push = read_push(message.SerializeToString(), lambda _: True)
    assert (len(push.points), push.dropped) == (POINTS_MAX, 2)

    message = new_message()
    point = add(message, "org.a").gauge.data_points.add(as_int=1)
    for number in range(LABELS_MAX + 1):
        point.attributes.add(key=f"k{number}").value.string_value = "v"
    long = add(message, "org.b").gauge.data_points.add(as_int=1)
    long.attributes.add(key="k").value.string_value = "v" * 256
    assert read_push(message.SerializeToString(), lambda _: True).dropped == 2


@pytest.mark.parametrize("what", ["resources", "scopes", "metrics"])
def test_what_a_push_makes_the_node_look_at_is_bounded(what: str) -> None:
    """Empty ones take two bytes each: there is room for 500,000 in a push of 1 MiB."""

    def read(number: int) -> int:
        message = new_message()
        for _ in range(number):
            if what == "resources":
                message.resource_metrics.add()
            elif what == "scopes":
                message.resource_metrics[0].scope_metrics.add()
            else:
                message.resource_metrics[0].scope_metrics[0].metrics.add()
        return read_push(message.SerializeToString(), lambda _: True).dropped

    assert read(ITEMS_MAX - 10) == 0
    with pytest.raises(CorruptData, match="more than"):
        read(ITEMS_MAX + 1)


def test_a_client_does_not_say_whose_series_it_is() -> None:
    message = new_message()
    point = add(message, "org.a").gauge.data_points.add(as_int=1)
    point.attributes.add(key="client.id").value.string_value = "another"
    assert read_push(message.SerializeToString(), lambda _: True).points[0].labels == ()


@pytest.mark.thorough
def test_a_node_that_gets_no_push_does_not_load_the_library() -> None:
    program = (
        "import sys, penstock.broker.node.main, penstock.broker.node.server, penstock.broker.node.wiring;"
        "print(sorted({'google.protobuf', 'opentelemetry', 'prometheus_client'} & sys.modules.keys()))"
    )
    command = (sys.executable, "-c", program)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_what_is_no_protobuf_is_refused() -> None:
    with pytest.raises(CorruptData):
        read_push(b"\xff\xff\xff", lambda _: True)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        push = read_push(data, lambda _: True)
    except CorruptData:
        return
    assert push.dropped >= 0
