"""`join` on real Spark and three nodes, compared with joins in plain Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from confluent_kafka import Message
from pipeline_topics import Sent, create_topics, drain, produce

from penstock.pipeline.job import JobError
from penstock.pipeline.jobs.join import JOB, JoinConfig
from penstock.pipeline.records.value_format import ValueFormat
from penstock.pipeline.tables.settings import TableSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

T0_MS: Final = 1_767_225_600_000
BEFORE_MS: Final = 30_000
AFTER_MS: Final = 60_000
EVENT: Final = ValueFormat(format="json", schema="id BIGINT, ad STRING, at BIGINT")


def test_two_streams_meet_within_bounds_of_time_over_a_restart(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    create_topics(bootstrap, "shown", "clicked", "shown-clicked", "clicked-bad", partition_count=2)
    config = JoinConfig(
        bootstrap=bootstrap,
        checkpoint=str(tmp_path),
        topics=("shown",),
        available_now=True,
        max_offsets_per_trigger=500,
        value=EVENT,
        event_time="at",
        key=("ad",),
        watermark_delay_ms=60_000,
        right_topic="clicked",
        right_value=EVENT,
        right_event_time="at",
        right_key=("ad",),
        right_watermark_delay_ms=60_000,
        before_ms=BEFORE_MS,
        after_ms=AFTER_MS,
        kind="left",
        output_topic="shown-clicked",
        table=TableSettings(location=str(tmp_path / "table")),
        dead_letter_topic="clicked-bad",
    )
    shown = [_event(number, number // 3, number) for number in range(600)]
    # Some are exactly on a bound, some just beyond it, some of an ad that no one was shown.
    offsets_s = (0, 5, -30, 60, -31, 61, 300)
    clicked = [_event(number, number // 6, number // 2 + offsets_s[number % 7]) for number in range(0, 1_200, 5)]
    clicked.append(_event(9_999, 9_999, 100))
    half = len(shown) // 2
    produce(bootstrap, "shown", _sent(shown[:half]))
    produce(bootstrap, "clicked", [*_sent(clicked[: len(clicked) // 2]), Sent(key="bad", value="{")])
    JOB.build(spark, config).awaitTermination()
    produce(bootstrap, "shown", _sent(shown[half:]))
    produce(bootstrap, "clicked", _sent(clicked[len(clicked) // 2 :]))
    # What moves both watermarks past all bounds, so that records without a partner come out.
    end = [_event(10_000, -1, 4_000)]
    produce(bootstrap, "shown", _sent(end))
    produce(bootstrap, "clicked", _sent([_event(10_001, -2, 4_000)]))
    JOB.build(spark, config).awaitTermination()

    pairs = sorted(
        (row["left"]["id"], row["right"] and row["right"]["id"]) for row in _rows(bootstrap, "shown-clicked")
    )
    expected = _joined(shown, clicked)
    matched = [pair for pair in expected if pair[1] is not None]
    assert len(matched) > 100
    assert len(expected) - len(matched) > 100
    assert sorted(pairs, key=str) == sorted(expected, key=str)
    stored = spark.read.parquet(f"{tmp_path}/table").select("left.id", "right.id").collect()
    assert sorted((tuple(row) for row in stored), key=str) == sorted(expected, key=str)
    (bad,) = drain(bootstrap, "clicked-bad", count=1)
    headers: Any = bad.headers()
    assert dict(headers)["penstock.source.topic"] == b"clicked"
    assert (bad.key(), bad.value()) == (b"bad", b"{")


def test_a_stream_meets_the_latest_value_of_a_compacted_topic(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    create_topics(bootstrap, "orders", "orders-priced", "orders-bad", partition_count=2)
    create_topics(bootstrap, "prices", configs={"cleanup.policy": "compact"})
    config = JoinConfig(
        bootstrap=bootstrap,
        checkpoint=str(tmp_path),
        topics=("orders",),
        available_now=True,
        value=ValueFormat(format="json", schema="id BIGINT, product STRING"),
        key=("product",),
        table_topic="prices",
        right_value=ValueFormat(format="json", schema="price BIGINT"),
        kind="left",
        output_topic="orders-priced",
        dead_letter_topic="orders-bad",
    )
    names = [f"p{number}" for number in range(50)]
    produce(bootstrap, "prices", (Sent(key=name, value='{"price":1}') for name in names))
    produce(bootstrap, "prices", (Sent(key=name, value=f'{{"price":{index}}}') for index, name in enumerate(names)))
    produce(bootstrap, "prices", [Sent(key="p7", value=None), Sent(key="p8", value="no price")])
    produce(bootstrap, "orders", [*_orders(range(200)), Sent(key="bad", value="?")])
    JOB.build(spark, config).awaitTermination()
    # Orders that were written keep their price; those after the change have the new one.
    produce(bootstrap, "prices", [Sent(key="p7", value='{"price":70}'), Sent(key="p9", value=None)])
    produce(bootstrap, "orders", _orders(range(200, 400)))
    JOB.build(spark, config).awaitTermination()

    found = {
        row["left"]["id"]: row["right"] and row["right"]["price"] for row in _rows(bootstrap, "orders-priced", 400)
    }
    before = {index: index for index in range(50)} | {7: None, 8: None}
    after = before | {7: 70, 9: None}
    expected = {number: before.get(number % 60) for number in range(200)}
    expected |= {number: after.get(number % 60) for number in range(200, 400)}
    assert found == expected
    assert {value for value in found.values() if value is not None} >= {1, 49, 70}
    assert drain(bootstrap, "orders-bad", count=1)[0].value() == b"?"


def test_the_table_is_kept_up_with_between_batches_and_tombstones_are_no_rows(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    from penstock.pipeline.results.table_snapshot import TableSnapshot

    create_topics(bootstrap, "table", partition_count=3)
    config = JoinConfig(
        bootstrap=bootstrap, checkpoint=str(tmp_path), topics=("x",), table_topic="table", output_topic="y"
    )
    snapshot = TableSnapshot(config, "table")
    assert snapshot.refreshed(spark).count() == 0
    produce(bootstrap, "table", (Sent(key=f"k{number}", value=b"1") for number in range(100)))
    assert snapshot.refreshed(spark).count() == 100
    unchanged = snapshot.refreshed(spark)
    assert snapshot.refreshed(spark) is unchanged
    produce(bootstrap, "table", [Sent(key="k1", value=b"2"), Sent(key="k2", value=None), Sent(key="new", value=b"1")])
    values = {row.key.decode(): row.value for row in snapshot.refreshed(spark).collect()}
    assert len(values) == 101
    assert (values["k1"], values["k2"], values["new"], values["k3"]) == (b"2", None, b"1", b"1")
    with pytest.raises(JobError, match="topic nowhere, the table, is not in the cluster"):
        TableSnapshot(config, "nowhere").refreshed(spark)


def _event(number: int, ad: int, at_s: int) -> dict[str, Any]:
    return {"id": number, "ad": f"ad{ad}", "at": T0_MS + at_s * 1_000}


def _sent(events: list[dict[str, Any]]) -> list[Sent]:
    return [Sent(key=event["ad"], value=json.dumps(event)) for event in events]


def _orders(numbers: range) -> list[Sent]:
    return [Sent(value=json.dumps({"id": number, "product": f"p{number % 60}"})) for number in numbers]


def _joined(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> list[tuple[int, int | None]]:
    pairs: list[tuple[int, int | None]] = []
    for one in left:
        partners = [
            other["id"]
            for other in right
            if other["ad"] == one["ad"] and -BEFORE_MS <= other["at"] - one["at"] <= AFTER_MS
        ]
        pairs += [(one["id"], partner) for partner in partners or [None]]
    return pairs


def _rows(bootstrap: str, topic: str, count: int | None = None) -> list[dict[str, Any]]:
    return [json.loads(_value(message)) for message in drain(bootstrap, topic, count=count)]


def _value(message: Message) -> bytes:
    value = message.value()
    assert isinstance(value, bytes)
    return value
