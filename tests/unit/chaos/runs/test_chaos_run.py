"""A run comes to its verdict whatever becomes of the cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from told_history import Told

from penstock.chaos.histories.cluster_sample import ClusterSample
from penstock.chaos.histories.operation import Operation
from penstock.chaos.histories.run_folder import RunFolder, RunRecord
from penstock.chaos.nemeses.fault import Kill
from penstock.chaos.nemeses.schedule import Schedule, Step
from penstock.chaos.runs import chaos_run
from penstock.chaos.runs.chaos_run import make_run
from penstock.chaos.runs.run_cluster import RunCluster
from penstock.chaos.runs.run_verdict import judge_run
from penstock.chaos.runs.sampler import Sampler
from penstock.local.errors import ClusterError, NodeFailedError

TOPICS: list[str] = []
"""In the order in which runs made them."""


class Clients:
    """That send one record and read it."""

    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        self.failures: list[str] = []

    def __len__(self) -> int:
        return 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def drain(self) -> None:
        pass

    def history(self, *, others: tuple[Operation, ...]) -> list[Operation]:
        assert others == ()
        told = Told()
        told.send(1, "chaos-0", 0, 10)
        told.poll(1, {"chaos-0": [[0, 10]]}, final=True)
        return told.operations


class NoSamples(Sampler):
    async def sample(self, time_ns: int) -> ClusterSample:
        return ClusterSample(time_ns, None, {}, {})

    async def close(self) -> None:
        pass


class BrokenSamples(NoSamples):
    async def close(self) -> None:
        raise RuntimeError("no sample")


class LostNode:
    """A nemesis one of whose nodes does not come back."""

    operations = ()

    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def wait(self) -> None:
        raise NodeFailedError("node 2 was not ready within 90 s", log_tail="all that it logged")


class UnfitNemesis:
    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        raise ClusterError("this cluster cannot have kill")


@pytest.fixture(autouse=True)
def _without_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def start_cluster(*_arguments: Any, **_options: Any) -> Iterator[RunCluster]:
        yield RunCluster(
            version="7",
            node_count=5,
            bootstrap=lambda _: "",
            looked_at="",
            target=lambda _: None,  # type: ignore[arg-type, return-value]
            sampler=lambda path, _topics, start_ns: NoSamples(path, start_ns=start_ns),
        )

    monkeypatch.setattr(chaos_run, "start_cluster", start_cluster)
    monkeypatch.setattr(chaos_run, "create_topics", lambda _at, _workload, topic, **_options: TOPICS.append(topic))
    monkeypatch.setattr(chaos_run, "wait_whole", lambda *_arguments, **_options: None)
    monkeypatch.setattr(chaos_run, "ClientProcesses", Clients)


def record_of(folder: Path) -> RunRecord:
    """Of a run with faults from a file."""
    path = folder / "faults.json"
    path.write_bytes(Schedule(length_s=20, steps=(Step(3, 2, Kill()),)).encode())
    return RunRecord(
        workload="queue", nemeses=(), seconds=60, nodes=5, seed=1, cluster="penstock", version="", schedule=str(path)
    )  # fmt: skip


def test_a_node_that_does_not_come_back_is_an_anomaly_of_a_run_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chaos_run, "Nemesis", LostNode)
    folder = RunFolder(tmp_path / "run")
    verdict = make_run(record_of(tmp_path), folder, say=lambda _: None)
    assert verdict.valid == "anomalies"
    (finding,) = verdict.findings
    assert finding.type == "not-whole"
    assert finding.message == "long after everything had healed, node 2 was not ready within 90 s"
    assert folder.report.exists()


def test_a_run_that_cannot_be_made_has_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chaos_run, "Nemesis", UnfitNemesis)
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(ClusterError, match="cannot have kill"):
        make_run(record_of(tmp_path), folder, say=lambda _: None)
    assert not folder.verdict.exists()


def test_the_record_has_the_length_of_the_schedule_and_what_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chaos_run, "Nemesis", LostNode)
    folder = RunFolder(tmp_path / "run")
    make_run(record_of(tmp_path), folder, say=lambda _: None)
    record = folder.read_record()
    assert (record.seconds, record.nodes, record.version) == (20, 5, "7")


def test_a_run_whose_samples_failed_has_a_history_that_can_be_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chaos_run, "Nemesis", LostNode)
    monkeypatch.setitem(globals(), "NoSamples", BrokenSamples)
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(RuntimeError, match="no sample"):
        make_run(record_of(tmp_path), folder, say=lambda _: None)
    assert [finding.type for finding in judge_run(folder).findings] == ["not-whole"]


@pytest.mark.thorough
def test_two_runs_on_a_cluster_of_others_share_no_topic(tmp_path: Path) -> None:
    TOPICS.clear()
    record = RunRecord(
        workload="queue", nemeses=(), seconds=0.01, nodes=3, seed=1, cluster="bootstrap", version="", bootstrap="a:1"
    )
    for name in ("one", "two"):
        make_run(record, RunFolder(tmp_path / name), say=lambda _: None)
    first, second = TOPICS
    assert first != second
    assert first.startswith("chaos-")
    assert RunFolder(tmp_path / "one").read_record().nodes == 5, "as many as it has"
