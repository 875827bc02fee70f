"""`windows` on real Spark and three nodes: counts, late records and bad records, over a restart."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pytest
from confluent_kafka import Message
from pipeline_topics import Sent, create_topics, drain, produce
from soak import soak_only

from penstock.pipeline.jobs.windows import JOB, WindowsConfig
from penstock.pipeline.records.value_format import ValueFormat
from penstock.pipeline.tables.settings import TableSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

T0_MS: Final = 1_767_225_600_000
"""2026-01-01, a multiple of all window lengths here."""
CLICK: Final = ValueFormat(format="json", schema="kind STRING, at BIGINT, ms DOUBLE")
WINDOW_MS: Final = 60_000
DELAY_MS: Final = 30_000
POISON: Final = {b"{": "the value is not JSON", b'{"kind":"a"}': "the event time at is null, or no time"}


def test_last_value_of_each_key_is_the_count_and_late_and_bad_records_are_found(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    create_topics(bootstrap, "clicks", "clicks-late", "clicks-bad")
    create_topics(bootstrap, "windows-by-minute", configs={"cleanup.policy": "compact"})
    config = WindowsConfig(
        bootstrap=bootstrap,
        checkpoint=str(tmp_path),
        topics=("clicks",),
        available_now=True,
        max_offsets_per_trigger=400,
        value=CLICK,
        event_time="at",
        window_ms=WINDOW_MS,
        watermark_delay_ms=DELAY_MS,
        group_by=("kind",),
        aggregates=("count", "mean=avg(ms)", "min(ms)", "max(ms)", "total=sum(ms)"),
        output_topic="windows-by-minute",
        late_topic="clicks-late",
        dead_letter_topic="clicks-bad",
        table=TableSettings(location=str(tmp_path / "table"), buckets=2),
    )
    generator = random.Random(7)
    first = [_click(generator, T0_MS + number * 1_000) for number in range(1_000)]
    produce(bootstrap, "clicks", _sent(first))
    produce(bootstrap, "clicks", [Sent(key="poison", value=value, headers=[("h", b"\xff")]) for value in POISON])
    _run(spark, config)
    # The watermark is now 30 s before the last event: the first minutes are closed, the last two are not.
    late = [_click(generator, T0_MS + number * 1_000) for number in range(0, 300, 10)]
    second = [_click(generator, T0_MS + number * 1_000) for number in range(970, 1_500)]
    produce(bootstrap, "clicks", _sent([*late, *second], partition=1))
    _run(spark, config)

    found = {_text(message.key()): _row(message) for message in drain(bootstrap, "windows-by-minute")}
    expected = _truth([*first, *second])
    assert len(expected) > 70
    assert found.keys() == expected.keys()
    for key, row in found.items():
        assert row == pytest.approx({**row, **expected[key]}), key
    stored = {bytes(row.key).decode(): row for row in spark.read.parquet(f"{tmp_path}/table").collect()}
    assert {key: (row["count"], row.mean) for key, row in stored.items()} == {
        key: (row["count"], row["mean"]) for key, row in found.items()
    }
    # Late records came with values that no other record has.
    found_late = sorted(_row(message)["ms"] for message in drain(bootstrap, "clicks-late"))
    assert found_late == sorted(click["ms"] for click in late)
    headers = dict(_headers(drain(bootstrap, "clicks-late")[0]))
    assert _text(headers["penstock.reason"]).startswith("late: the window was closed by the watermark")
    assert headers["penstock.source.partition"] == b"1"
    _check_dead_letters(bootstrap)


def _check_dead_letters(bootstrap: str) -> None:
    positions = {
        (f"{message.partition()}".encode(), f"{message.offset()}".encode()): message
        for message in drain(bootstrap, "clicks")
        if message.key() == b"poison"
    }
    letters = drain(bootstrap, "clicks-bad", count=len(POISON))
    for letter in letters:
        headers = _headers(letter)
        value = letter.value()
        assert value is not None
        assert headers[0] == ("h", b"\xff")
        added = dict(headers[1:])
        source = positions.pop((added["penstock.source.partition"], added["penstock.source.offset"]))
        assert (letter.key(), letter.value()) == (source.key(), source.value())
        assert added == {
            "penstock.reason": POISON[value].encode(),
            "penstock.source.topic": b"clicks",
            "penstock.source.partition": f"{source.partition()}".encode(),
            "penstock.source.offset": f"{source.offset()}".encode(),
            "penstock.source.timestamp": f"{source.timestamp()[1]}".encode(),
            "penstock.job": b"windows",
        }
    assert not positions


@soak_only
def test_closed_sliding_windows_and_sessions_are_written_once(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    create_topics(bootstrap, "visits", partition_count=1)
    create_topics(bootstrap, "visits-sliding", "visits-sessions", "visits-late")
    visits = [{"kind": "a", "at": T0_MS + second * 1_000, "ms": 1.0} for second in (0, 5, 20, 61, 64, 200, 400, 600)]
    produce(bootstrap, "visits", _sent(visits))
    options: dict[str, Any] = {
        "bootstrap": bootstrap,
        "checkpoint": str(tmp_path),
        "topics": ("visits",),
        "available_now": True,
        "value": CLICK,
        "event_time": "at",
        "watermark_delay_ms": 0,
        "group_by": ("kind",),
        "output_mode": "append",
    }
    sliding = WindowsConfig(
        **options,
        name="sliding",
        window_ms=60_000,
        slide_ms=30_000,
        output_topic="visits-sliding",
        late_topic="visits-late",
    )
    sessions = WindowsConfig(
        **options,
        name="sessions",
        session_gap_ms=30_000,
        output_topic="visits-sessions",
        table=TableSettings(location=str(tmp_path / "sessions")),
    )
    _run(spark, sliding)
    _run(spark, sessions)
    counts = _counts(bootstrap, "visits-sliding")
    # Those whose end the watermark, 600 s, has reached; a record is in two.
    assert counts == {(-30, 30): 3, (0, 60): 3, (30, 90): 2, (60, 120): 2, (150, 210): 1, (180, 240): 1} | {
        (360, 420): 1,
        (390, 450): 1,
    }
    assert _counts(bootstrap, "visits-sessions") == {(0, 50): 3, (61, 94): 2, (200, 230): 1, (400, 430): 1}

    # As after a crash between the last batch's results and its commit: the table takes none of them again.
    commits = [path for path in (tmp_path / "sessions-v1" / "main" / "commits").iterdir() if path.name.isdigit()]
    assert len(commits) > 1
    for path in commits:
        if int(path.name) == len(commits) - 1:
            path.unlink()
            path.with_name(f".{path.name}.crc").unlink()
    _run(spark, sessions)
    assert len(drain(bootstrap, "visits-sessions")) == 8
    assert sorted(row["count"] for row in spark.read.parquet(f"{tmp_path}/sessions").collect()) == [1, 1, 2, 3]

    # One window of this record is closed and one is open: it is missing from one, so it is late.
    produce(bootstrap, "visits", _sent([{"kind": "a", "at": T0_MS + 580_000, "ms": 2.0}], partition=0))
    _run(spark, sliding)
    (late,) = drain(bootstrap, "visits-late", count=1)
    assert _row(late)["ms"] == 2.0


def test_record_that_cannot_be_used_ends_the_job_or_is_counted(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    create_topics(bootstrap, "poisoned", "poisoned-counts", partition_count=1)
    produce(bootstrap, "poisoned", [Sent(value='{"n":1}'), Sent(value="no"), Sent(value='{"n":2}')])
    options: dict[str, Any] = {
        "bootstrap": bootstrap,
        "checkpoint": str(tmp_path),
        "topics": ("poisoned",),
        "available_now": True,
        "value": ValueFormat(format="json", schema="n INT"),
        "window_ms": 86_400_000 * 365,
        "output_topic": "poisoned-counts",
    }
    with pytest.raises(Exception, match=r"stopping stops at a record .*poisoned-0 at offset 1: the value is not JSON"):
        _run(spark, WindowsConfig(**options, name="stopping"))
    query = JOB.build(spark, WindowsConfig(**options, name="skipping", on_bad_record="skip"))
    query.awaitTermination()
    counted = [progress["observedMetrics"]["records"]["bad_records"] for progress in query.recentProgress]
    assert sum(counted) == 1
    (result,) = drain(bootstrap, "poisoned-counts", count=1)
    assert _row(result)["count"] == 2


def _run(spark: SparkSession, config: WindowsConfig) -> None:
    JOB.build(spark, config).awaitTermination()


def _click(generator: random.Random, at_ms: int) -> dict[str, Any]:
    return {"kind": generator.choice(["a", "b|c", "d\\e"]), "at": at_ms, "ms": generator.random()}


def _sent(clicks: Iterable[dict[str, Any]], partition: int = -1) -> list[Sent]:
    return [Sent(key=click["kind"], value=json.dumps(click), partition=partition) for click in clicks]


def _truth(clicks: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    groups: dict[tuple[int, str], list[float]] = defaultdict(list)
    for click in clicks:
        groups[(click["at"] - T0_MS) // WINDOW_MS, click["kind"]].append(click["ms"])
    return {
        f"2026-01-01T00:{minute:02}:00.000Z|{kind.replace(chr(92), chr(92) * 2).replace('|', chr(92) + '|')}": {
            "kind": kind,
            "count": len(values),
            "mean": sum(values) / len(values),
            "min_ms": min(values),
            "max_ms": max(values),
            "total": sum(values),
        }
        for (minute, kind), values in groups.items()
    }


def _counts(bootstrap: str, topic: str) -> dict[tuple[int, int], int]:
    """By start and end, in seconds after T0; each is there once."""
    messages = drain(bootstrap, topic)
    found = {}
    for message in messages:
        row = _row(message)
        found[_second(row["window_start"]), _second(row["window_end"])] = row["count"]
    assert len(found) == len(messages)
    return found


def _row(message: Message) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_text(message.value()))
    return found


def _headers(message: Message) -> list[tuple[str, bytes]]:
    return cast("list[tuple[str, bytes]]", message.headers())


def _text(data: bytes | str | None) -> str:
    assert isinstance(data, bytes)
    return data.decode()


def _second(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() - T0_MS / 1_000)
