"""The job `check`: topics with planted losses, repetitions and swaps, a clean one, and a history's file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import msgspec
import pytest
from pipeline_topics import Sent, create_topics, produce, produce_aborted
from told_history import QueueModel, Told

from penstock.chaos.checkers.finding import Finding, Verdict
from penstock.chaos.histories.history_file import write_history
from penstock.pipeline.job import JobError
from penstock.pipeline.jobs.check import JOB, CheckConfig
from penstock.pipeline.running.runner import StopRequest, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

KEYS = 4
PARTITIONS = 2
NUMBERS = 250


def records(*, lost: Sequence[int] = (), again: Sequence[int] = (), swapped: Sequence[int] = ()) -> list[Sent]:
    """Of each key the numbers from 0 on, in a partition of its own; what is planted is in the first key."""
    found = []
    for key in range(KEYS):
        numbers = list(range(NUMBERS))
        if key == 0:
            for number in swapped:
                numbers[number], numbers[number + 1] = numbers[number + 1], numbers[number]
            numbers = [number for one in numbers for number in ([one] * (1 + (one in again))) if number not in lost]
        found += [Sent(key=f"k{key}", value=str(number), partition=key % PARTITIONS) for number in numbers]
    return found


def checked(spark: SparkSession, config: CheckConfig) -> tuple[int, Verdict]:
    status = run(spark, JOB, config, stop=StopRequest(), stop_timeout_s=30)
    (line,) = spark.read.text(f"{config.output}/verdict").collect()
    return status, msgspec.json.decode(line.value, type=Verdict)


def topic_config(bootstrap: str, folder: Path, topic: str) -> CheckConfig:
    return CheckConfig(
        bootstrap=bootstrap,
        checkpoint=str(folder / "checkpoint"),
        output=str(folder / "output"),
        topics=(topic,),
        available_now=True,
        max_offsets_per_trigger=600,
    )


def places(findings: Sequence[Finding], kind: str) -> list[tuple[int, int]]:
    return [(one.detail["number"], one.detail["offset"]) for one in findings if one.type == kind]


def test_planted_losses_repetitions_and_swaps_are_found_with_their_places(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    create_topics(bootstrap, "numbered", partition_count=PARTITIONS)
    # Interleaved with an aborted transaction, which is no repetition, and spread over batches and two runs.
    planted = records(lost=[17, 18, 240], again=[30, 200], swapped=[50])
    config = topic_config(bootstrap, tmp_path, "numbered")
    produce(bootstrap, "numbered", planted[:600])
    produce_aborted(bootstrap, "numbered", planted[:5], transactional_id="check")
    status, verdict = checked(spark, config)
    assert status == 3
    assert verdict.counts == {"lost": 3, "duplicate": 2, "reordered": 1}
    produce(bootstrap, "numbered", planted[600:])
    status, verdict = checked(spark, config)
    assert (status, verdict.valid) == (3, "anomalies")
    assert verdict.counts == {"lost": 3, "duplicate": 2, "reordered": 1}
    assert verdict.statistics["topics"] == {"sequences": KEYS, "records": KEYS * NUMBERS - 1, "unnumbered": 0}
    assert {finding.key for finding in verdict.findings} == {"numbered-0"}
    gaps = [(one.detail["first"], one.detail["last"]) for one in verdict.findings if one.type == "lost"]
    assert gaps == [(17, 18), (240, 240)]
    assert places(verdict.findings, "reordered") == [(50, 50)], "two were lost before it and one is there again"
    assert [number for number, _ in places(verdict.findings, "duplicate")] == [30, 200]


def test_a_clean_topic_is_valid_and_one_without_numbers_shows_nothing(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    create_topics(bootstrap, "clean", "wordy", partition_count=PARTITIONS)
    produce(bootstrap, "clean", records())
    status, verdict = checked(spark, topic_config(bootstrap, tmp_path / "clean", "clean"))
    assert (status, verdict.valid, verdict.counts) == (0, "valid", {})
    assert verdict.statistics["topics"]["records"] == KEYS * NUMBERS
    produce(bootstrap, "wordy", [Sent(value="not a number")])
    status, verdict = checked(spark, topic_config(bootstrap, tmp_path / "wordy", "wordy"))
    assert (status, verdict.valid) == (4, "invalid-run")
    assert verdict.notes == (
        "no record with a number was read, so nothing was put to the test",
        "1 records have no number: nothing is known of them",
    )


def test_a_topic_may_begin_with_nothing_but_an_aborted_transaction(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    create_topics(bootstrap, "aborted-first", partition_count=PARTITIONS)
    produce_aborted(bootstrap, "aborted-first", records()[:5], transactional_id="check-aborted")
    config = topic_config(bootstrap, tmp_path, "aborted-first")
    status, verdict = checked(spark, config)
    assert (status, verdict.valid) == (4, "invalid-run")
    produce(bootstrap, "aborted-first", records())
    status, verdict = checked(spark, config)
    assert (status, verdict.valid) == (0, "valid")
    assert verdict.statistics["topics"]["records"] == KEYS * NUMBERS


def test_a_mirror_with_planted_faults_is_found_out_and_a_true_one_is_valid(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    create_topics(bootstrap, "original", "true-copy", "bad-copy", partition_count=PARTITIONS)
    sent = [
        Sent(key=f"k{number}", value="same", partition=number % PARTITIONS, timestamp_ms=1_700_000_000_000 + number)
        for number in range(400)
    ]
    produce(bootstrap, "original", sent)
    produce_aborted(bootstrap, "original", sent[:3], transactional_id="check-mirror")
    produce(bootstrap, "true-copy", sent)
    bad = [one for number, one in enumerate(sent) if number != 40]
    bad[100], bad[102] = bad[102], bad[100]
    produce(bootstrap, "bad-copy", [*bad, sent[7], Sent(value="of no source", partition=0)])
    config = topic_config(bootstrap, tmp_path / "true", "original")
    status, verdict = checked(spark, msgspec.structs.replace(config, mirror_topic="true-copy"))
    assert (status, verdict.valid, verdict.counts) == (0, "valid", {})
    assert verdict.statistics["topics"] == {"source": 400, "mirror": 400}
    config = topic_config(bootstrap, tmp_path / "bad", "original")
    status, verdict = checked(spark, msgspec.structs.replace(config, mirror_topic="bad-copy"))
    assert (status, verdict.valid) == (3, "anomalies")
    assert verdict.counts == {"lost": 1, "duplicate": 1, "reordered": 1, "unexpected": 1}
    by_type = {finding.type: finding for finding in verdict.findings}
    assert (by_type["lost"].key, by_type["lost"].detail) == ("original-0", {"source": 20, "mirror": None})
    assert by_type["duplicate"].detail == {"source": 3, "mirror": 200}


def test_a_history_has_the_exit_status_of_chaos_judge(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = QueueModel(Random(2), bug="duplicate").run(200)
    path = tmp_path / "history.jsonl"
    write_history(path, history.header, history.operations)
    config = CheckConfig(checkpoint=str(tmp_path / "checkpoint"), output=str(tmp_path / "output"), history=str(path))
    status, verdict = checked(spark, config)
    assert (status, verdict.valid) == (3, "anomalies")
    assert "ANOMALIES\nduplicate (" in capsys.readouterr().out
    # The next run has the same name and checkpoint: its verdict is that on the file as it is then.
    healthy = QueueModel(Random(2)).run(200)
    write_history(path, healthy.header, healthy.operations)
    status, verdict = checked(spark, config)
    assert (status, verdict.valid) == (0, "valid")
    path.unlink()
    with pytest.raises(JobError, match=f"There is no file {path}"):
        checked(spark, config)


def test_a_file_that_is_no_history_fails_with_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    told = Told()
    told.do(1, "send", 7)
    path = tmp_path / "history.jsonl"
    write_history(path, told.header, told.operations)
    config = CheckConfig(checkpoint=str(tmp_path / "checkpoint"), output=str(tmp_path / "output"), history=str(path))
    with pytest.raises(JobError, match="expected micro-operations"):
        checked(spark, config)
