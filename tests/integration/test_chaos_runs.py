"""Runs of `penstock chaos`: real clusters behind proxies, real clients, faults, and the verdict."""

import json
import subprocess
import sys
from pathlib import Path

from penstock.chaos.histories.history_file import read_history
from penstock.chaos.runs.cluster_samples import read_samples
from penstock.chaos.runs.run_folder import RunFolder

RUN_TIMEOUT_S = 240


def chaos(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "penstock", "chaos", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )


def test_a_run_leaves_all_that_its_verdict_rests_on(tmp_path: Path, toxiproxy: Path) -> None:
    told = chaos(
        *("run", "--workload", "queue", "--nemesis", "partition:leaders,kill:one", "--time", "20", "--seed", "5"),
        *("--out", "run"),
        folder=tmp_path,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    folder = RunFolder(tmp_path / "run")
    record = folder.read_record()
    assert (record.workload, record.seed, record.nodes) == ("queue", 5, 3)
    history = read_history(folder.history)
    assert {event.f for event in history.faults()} >= {"partition", "kill", "canary"}
    assert sum(event.type == "ok" for event in history.operations) > 100
    leaders = {sample.leader for one in read_samples(folder.samples) for sample in one.partitions.values()}
    assert len(leaders - {None}) > 1, "the leader of a partition was cut off, and another one led"
    assert json.loads(folder.verdict.read_bytes())["valid"] == "valid"
    assert "<svg" in folder.report.read_text()
