"""What adds up over batches, restarts and failures of queries; and the metrics and lines made of it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families as parse_text
from rich.console import Console
from spark_progress import QUERY, RUN, progress_json

from penstock.pipeline.progress import pipeline_metrics, progress_table
from penstock.pipeline.progress.group_progress import lowest
from penstock.pipeline.progress.pipeline_metrics import METRICS, GroupCounts, PipelineCollector
from penstock.pipeline.progress.progress_line import ProgressLine, line_of
from penstock.pipeline.progress.progress_table import ProgressTable, QueryStatus
from penstock.pipeline.progress.progress_values import progress_of


@pytest.fixture
def table() -> ProgressTable:
    made = ProgressTable()
    made.started(QUERY, RUN, "counts")
    return made


def status(table: ProgressTable) -> QueryStatus:
    (only,) = table.statuses()
    return only


def samples(
    table: ProgressTable, group: GroupCounts | None = None
) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """By name and labels, but for the pipeline's."""
    registry = CollectorRegistry()
    registry.register(PipelineCollector("lake", table, group))
    found = {}
    for family in parse_text(generate_latest(registry).decode()):
        for sample in family.samples:
            labels = dict(sample.labels)
            assert labels.pop("pipeline") == "lake"
            found[sample.name.removeprefix("penstock_pipeline_"), tuple(labels.items())] = sample.value
    return found


def test_counts_add_up_and_outlive_a_restart(table: ProgressTable) -> None:
    table.progressed(progress_of(progress_json()))
    table.progressed(progress_of(progress_json(batchId=2)))
    assert table.terminated(QUERY, RUN, has_failed=True)
    assert not table.running()
    table.started(QUERY, "second", "counts")
    table.progressed(progress_of(progress_json(batchId=3, runId="second")))
    one = status(table)
    assert (one.starts, one.failures, one.batches, one.input_rows, one.late_rows) == (2, 1, 3, 3000, 9)
    assert one.is_running
    assert one.phases_s["addBatch"] == pytest.approx(3 * 0.479)


def test_the_end_of_a_run_that_another_followed_says_nothing(table: ProgressTable) -> None:
    table.started(QUERY, "second", "counts")
    assert table.terminated(QUERY, RUN, has_failed=False) is None
    assert table.running()


def test_a_trigger_without_a_batch_adds_no_batch(table: ProgressTable) -> None:
    table.progressed(progress_of(progress_json(durationMs={"triggerExecution": 4}, numInputRows=0)))
    assert (status(table).batches, status(table).input_rows) == (0, 0)


def test_an_idle_query_has_no_rate_and_is_seen(table: ProgressTable) -> None:
    table.progressed(progress_of(progress_json()))
    table.idled(QUERY, 1_800_000_000_000)
    one = status(table)
    assert one.seen_ms == 1_800_000_000_000
    assert one.newest is not None
    assert one.newest.processed_rows_per_second == 0.0
    assert one.newest.partitions, "where it stands is still known"


def test_a_progress_without_places_keeps_those_of_before(table: ProgressTable) -> None:
    table.progressed(progress_of(progress_json()))
    table.progressed(progress_of(progress_json(sources=[], batchId=2)))
    newest = status(table).newest
    assert newest is not None
    assert (newest.batch_id, len(newest.partitions)) == (2, 2)


def test_a_batch_that_is_done_again_keeps_the_ends_of_partitions(table: ProgressTable) -> None:
    """Spark does not say them of such a batch."""
    sources = [{"endOffset": {"t": {"0": 1300, "1": 1200, "2": 1}}, "latestOffset": None}]
    table.progressed(progress_of(progress_json()))
    table.progressed(progress_of(progress_json(sources=sources, batchId=2)))
    newest = status(table).newest
    assert newest is not None
    assert [one.lag for one in newest.partitions] == [0, 516, None]
    assert samples(table)["topic_lag_offsets", (("query", "counts"), ("topic", "t"))] == 516


def test_queries_beyond_the_bound_are_left_out(table: ProgressTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_table, "QUERIES_MAX", 1)
    table.started("other", "run", "other")
    assert table.progressed(progress_of(progress_json(id="other", name="other"))) is None
    assert status(table).name == "counts"


def test_every_metric_is_told_once_its_value_is_known(table: ProgressTable) -> None:
    table.progressed(progress_of(progress_json()))
    found = samples(table, GroupCounts("watched", commits=3, failures=1))
    assert {f"penstock_pipeline_{name}" for name, _ in found} == {metric.name for metric in METRICS}
    query = ("query", "counts")
    assert found["running", (query,)] == 1
    assert found["batch_id", (query,)] == 1
    assert found["input_rows_total", (query,)] == 1000
    assert found["watermark_timestamp_seconds", (query,)] == 1795855673.364
    assert found["last_progress_timestamp_seconds", (query,)] == 1795855739.232
    assert found["phase_seconds_total", (("phase", "addBatch"), query)] == 0.479
    assert found["state_memory_bytes", (("operator", "0 stateStoreSave"), query)] == 3360
    place = (("partition", "1"), query, ("topic", "t"))
    assert [found[name, place] for name in ("offset", "latest_offset", "lag_offsets")] == [1144, 1716, 572]
    assert found["topic_lag_offsets", (query, ("topic", "t"))] == 1000
    assert found["group_commits_total", (("group", "watched"),)] == 3
    assert found["group_commit_failures_total", (("group", "watched"),)] == 1


def test_beyond_the_bound_only_topics_are_told(table: ProgressTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_metrics, "PARTITIONS_MAX", 1)
    monkeypatch.setattr(pipeline_metrics, "TOPICS_MAX", 1)
    sources = [
        {"endOffset": {"t": {"0": 1, "1": 1}, "u": {"0": 1}}, "latestOffset": {"t": {"0": 3, "1": 4}, "u": {"0": 2}}}
    ]
    table.progressed(progress_of(progress_json(sources=sources)))
    found = samples(table)
    assert [labels for name, labels in found if name == "lag_offsets"] == [
        (("partition", "0"), ("query", "counts"), ("topic", "t"))
    ]
    assert {labels: value for (name, labels), value in found.items() if name == "topic_lag_offsets"} == {
        (("query", "counts"), ("topic", "t")): 5
    }


def test_the_line_of_a_query_says_where_it_stands(table: ProgressTable) -> None:
    table.progressed(progress_of(progress_json()))
    assert line_of(status(table)) == (
        "counts: batch 1, 1,000 rows, 1,585 rows/s, 1,000 behind, 7 rows of state, batch took 0.6 s"
    )
    table.started(QUERY, "second", "counts")
    table.terminated(QUERY, "second", has_failed=True)
    assert line_of(status(table)) == (
        "counts: ended with an error, batch 1, 1,000 rows, 1,000 behind, 7 rows of state, restarted once"
    )


def test_without_a_terminal_a_line_comes_every_ten_seconds_of_batches_and_at_the_end(table: ProgressTable) -> None:
    output = io.StringIO()
    line = ProgressLine(Console(file=output, width=40))
    for second in (10, 12, 19, 21):
        told = table.progressed(progress_of(progress_json(batchId=second, timestamp=f"2026-11-28T08:00:{second}.000Z")))
        assert told is not None
        line.progressed(told)
    ended = table.terminated(QUERY, RUN, has_failed=False)
    assert ended is not None
    line.ended(ended)
    line.warn("something")
    batches = [
        one.partition(", 1,0")[0].partition(", 4,0")[0].partition(", ")[0] for one in output.getvalue().splitlines()
    ]
    assert batches == ["counts: batch 10", "counts: batch 21", "counts: ended", "warning: something"]


def test_on_a_terminal_a_line_changes_in_place(table: ProgressTable) -> None:
    output = io.StringIO()
    line = ProgressLine(Console(file=output, force_terminal=True, width=200))
    for batch in (10, 11):
        told = table.progressed(progress_of(progress_json(batchId=batch)))
        assert told is not None
        line.progressed(told)
    assert "batch 11" in output.getvalue()
    assert "\x1b[2K" in output.getvalue(), "the line of before is erased"
    ended = table.terminated(QUERY, RUN, has_failed=False)
    assert ended is not None
    line.ended(ended)
    assert output.getvalue().rstrip().endswith("state")
    line.close()


def test_the_documentation_has_every_metric_with_its_labels() -> None:
    documentation = (Path(__file__).parents[4] / "docs/pipeline.md").read_text()
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        assert f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |" in documentation, metric.name


def test_a_group_stands_where_the_last_query_does() -> None:
    assert lowest([{("t", 0): 5, ("t", 1): 7}, {("t", 0): 3}]) == {("t", 0): 3, ("t", 1): 7}
