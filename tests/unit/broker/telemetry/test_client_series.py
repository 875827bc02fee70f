"""The series of what clients push: added up, bounded, forgotten."""

from uuid import UUID

import pytest

from penstock.broker.telemetry.rules.client_series import GONE_MS, ClientSeries, PushedPoint
from penstock.broker.telemetry.rules.prometheus_names import label_name, metric_name

ONE, TWO, THREE = UUID(int=1), UUID(int=2), UUID(int=3)


def point(name: str = "n", value: float = 1.0, *, is_counter: bool = False, is_delta: bool = False) -> PushedPoint:
    return PushedPoint(name=name, labels=(("topic", "t"),), is_counter=is_counter, is_delta=is_delta, value=value)


def values(series: ClientSeries) -> dict[str, list[float]]:
    return {family.name: [value for _, value in family.series] for family in series.families()}


def take(series: ClientSeries, *points: PushedPoint, client: UUID = ONE, now_ms: int = 0) -> None:
    series.push(client, f"client-{client.int}", points, now_ms=now_ms, expires_ms=now_ms + 100)


def test_deltas_are_added_up_and_other_points_replace() -> None:
    series = ClientSeries()
    for _ in range(2):
        take(series, point("sum", 3, is_counter=True, is_delta=True), point("total", 5, is_counter=True), point("g", 7))
    assert values(series) == {"g": [7], "sum": [6], "total": [5]}


def test_a_series_says_whose_it_is() -> None:
    series = ClientSeries()
    take(series, point())
    (family,) = series.families()
    assert dict(family.series[0][0]) == {"client_instance_id": str(ONE), "client_id": "client-1", "topic": "t"}


def test_series_expire_with_their_client() -> None:
    series = ClientSeries()
    take(series, point(), point("m"), now_ms=0)
    take(series, point(), client=TWO, now_ms=50)
    series.forget(100)
    assert values(series) == {"n": [1]}
    assert (len(series), series.client_count) == (1, 1)
    series.forget(150)
    assert (len(series), series.client_count, values(series)) == (0, 0, {})


def test_series_of_a_client_that_disconnected_are_kept_for_one_more_scrape() -> None:
    series = ClientSeries()
    series.push(ONE, "a", (point(),), now_ms=0, expires_ms=10 * GONE_MS)
    series.disconnect(ONE, now_ms=5)
    series.disconnect(TWO, now_ms=5)
    series.forget(GONE_MS + 4)
    assert len(series) == 1
    series.forget(GONE_MS + 5)
    assert len(series) == 0
    # One that comes back keeps what it counted.
    series.push(ONE, "a", (point(value=1, is_delta=True),), now_ms=0, expires_ms=10 * GONE_MS)
    series.disconnect(ONE, now_ms=0)
    series.push(ONE, "a", (point(value=2, is_delta=True),), now_ms=1, expires_ms=10 * GONE_MS)
    series.forget(GONE_MS)
    assert values(series) == {"n": [3]}


def test_clients_that_disconnected_make_room_for_others() -> None:
    series = ClientSeries(clients_max=2)
    take(series, point("a"))
    take(series, point("b"), client=TWO)
    take(series, point("c"), client=THREE)
    assert (values(series), series.dropped) == ({"a": [1], "b": [1]}, 1)
    series.disconnect(TWO, now_ms=1)
    take(series, point("c"), client=THREE, now_ms=2)
    assert (values(series), series.client_count, series.dropped) == ({"a": [1], "c": [1]}, 2, 1)
    # One that has come back is not gone.
    series.disconnect(ONE, now_ms=3)
    take(series, point("a"), now_ms=4)
    take(series, point("b"), client=TWO, now_ms=5)
    assert (values(series), series.dropped) == ({"a": [1], "c": [1]}, 2)


def test_a_name_has_one_kind_until_its_last_series_is_gone() -> None:
    series = ClientSeries()
    take(series, point(is_counter=True))
    take(series, point(), client=TWO)
    assert (values(series), series.dropped) == ({"n": [1]}, 1)
    take(series, point(), client=TWO, now_ms=200)
    assert [family.is_counter for family in series.families()] == [False]


def test_series_of_a_client_are_bounded() -> None:
    series = ClientSeries(series_per_client_max=2)
    take(series, *(point(f"n{number}") for number in range(3)))
    assert (len(series), series.dropped) == (2, 1)
    # Those that are known go on.
    take(series, point("n1", 9))
    assert values(series)["n1"] == [9]


def test_series_of_all_clients_and_clients_are_bounded() -> None:
    series = ClientSeries(series_max=3, clients_max=2)
    for number in range(3):
        take(series, point("a"), point("b"), client=UUID(int=number))
    assert (len(series), series.client_count, series.dropped) == (3, 2, 3)


@pytest.mark.parametrize(
    ("name", "unit", "is_counter", "expected"),
    [
        ("org.apache.kafka.producer.connection.creation.total", "1", True, "producer_connection_creation_total"),
        ("org.apache.kafka.producer.connection.creation", "", True, "producer_connection_creation_total"),
        ("org.apache.kafka.producer.request.latency.avg", "ms", False, "producer_request_latency_avg_milliseconds"),
        ("org.apache.kafka.client.io-wait.ratio", "1", False, "client_io_wait_ratio"),
        ("org.apache.kafka.consumer.bytes", "By", True, "consumer_bytes_total"),
        ("org.apache.kafka.consumer.queue", "{record}", False, "consumer_queue"),
    ],
)  # fmt: skip
def test_names_follow_the_opentelemetry_rules(name: str, unit: str, is_counter: bool, expected: str) -> None:
    assert metric_name(name, unit, is_counter=is_counter) == f"org_apache_kafka_{expected}"


def test_a_client_cannot_push_a_series_of_the_node() -> None:
    name = metric_name("kafka.server.brokertopicmetrics.messagesin", "", is_counter=True)
    assert name == "client_kafka_server_brokertopicmetrics_messagesin_total"


@pytest.mark.parametrize("name", ["", "...", "x" * 201])
def test_a_name_that_is_none_is_dropped(name: str) -> None:
    assert metric_name(name, "", is_counter=False) is None


def test_label_names_are_those_of_prometheus() -> None:
    assert [label_name(name) for name in ("node.id", "9-lives", "")] == ["node_id", "key_9_lives", "key"]
