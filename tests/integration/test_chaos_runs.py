"""Runs of `penstock chaos`: real clusters whose links break, real clients, faults, and the verdict."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from missing_tools import need_namespaces, need_toxiproxy

from penstock.chaos.checkers.verdict_text import EXIT_CODES
from penstock.chaos.histories.cluster_sample import read_samples
from penstock.chaos.histories.history_file import read_history
from penstock.chaos.histories.run_folder import RunFolder
from penstock.chaos.runs.termination import STATUS
from penstock.local.cluster import LocalCluster
from penstock.local.processes import send_signal

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

RUN_TIMEOUT_S = 250
END_TIMEOUT_S = 40
# Of the matrix, what differs most. `make chaos` has all of it.
SELECTION = (
    ("queue", "partition:leaders,kill:one", 3, 5),
    ("queue-transactions-subscribe", "moved-leader,restart:one", 3, 11),
    ("list-append", "pause:leaders,kill:controllers", 3, 12),
    ("exactly-once", "kill:one,partition:minority-third", 5, 13),
    ("metadata", "partition:controllers,quorum-transfer", 3, 14),
    ("register", "power-loss:one,slow-disk", 3, 15),
    ("group-auto-commit", "clock-bump,connection-resets", 3, 16),
)

FAULTS_OF_THE_KERNEL = """
length_s = 8
[[steps]]
at_s = 1
duration_s = 2
fault = { kind = "partition", selector = "client-from-leader" }
[[steps]]
at_s = 4
duration_s = 2
fault = { kind = "packet-loss", percent = 10 }
"""


def chaos(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = (sys.executable, "-P", "-m", "penstock", "chaos", *words)
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            output, errors = process.communicate(timeout=RUN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            # Its nodes end with it, and it says where it was.
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=END_TIMEOUT_S)
            pytest.fail(f"no end within {RUN_TIMEOUT_S} s\n{output}{errors}")
        except BaseException:
            process.terminate()
            raise
    return subprocess.CompletedProcess(words, process.returncode, output, errors)


def run_until_it_shows_something(
    *words: str, seed: int, folder: Path
) -> tuple[subprocess.CompletedProcess[str], RunFolder]:
    """What it said, and its folder.

    On a machine that is busy with something else a fault may come too late to take hold. Such a run shows nothing, so
    it is made once more, with another seed; anomalies are anomalies the first time.
    """
    told = chaos(*words, "--seed", str(seed), "--out", "run", folder=folder)
    if told.returncode != EXIT_CODES["invalid-run"]:
        return told, RunFolder(folder / "run")
    told = chaos(*words, "--seed", str(seed + 100), "--out", "again", folder=folder)
    return told, RunFolder(folder / "again")


@contextmanager
def run_that_has_begun(*words: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], LocalCluster]]:
    """Of counters, into the folder `run`: all its clients are started, and its cluster can be attached to."""
    command = [sys.executable, "-P", "-m", "penstock", "chaos", "run", "--workload", "counter", "--out", "run", *words]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert "4 clients of the workload counter" in process.stderr.readline()
            cluster = LocalCluster.attach(folder / "run" / "nodes")
            assert cluster is not None
            yield process, cluster
        except BaseException:
            # Its nodes end with it.
            process.kill()
            raise


@pytest.fixture
def toxiproxy() -> None:
    need_toxiproxy()


@pytest.mark.usefixtures("toxiproxy")
@pytest.mark.parametrize(("workload", "nemesis", "nodes", "seed"), SELECTION)
def test_nothing_that_is_promised_breaks_under_faults(
    workload: str, nemesis: str, nodes: int, seed: int, tmp_path: Path
) -> None:
    words = ("run", "--workload", workload, "--nemesis", nemesis, "--nodes", str(nodes), "--time", "25")
    told, _ = run_until_it_shows_something(*words, seed=seed, folder=tmp_path)
    assert told.returncode == 0, told.stdout + told.stderr


def test_nothing_that_is_promised_breaks_where_the_kernel_breaks_links_of_nodes_and_clients(tmp_path: Path) -> None:
    need_namespaces()
    (tmp_path / "faults.toml").write_text(FAULTS_OF_THE_KERNEL)
    words = ("run", "--workload", "queue", "--links", "namespaces", "--schedule", "faults.toml")
    told, folder = run_until_it_shows_something(*words, seed=17, folder=tmp_path)
    assert told.returncode == 0, told.stdout + told.stderr
    assert folder.read_record().links == "namespaces"
    assert "--links namespaces" in told.stdout, "so that it can be repeated"
    faults = [event for event in read_history(folder.history).faults() if isinstance(event.value, dict)]
    cut = [event.value["link"] for event in faults if event.f == "canary" and event.value["during"] == "partition"]
    assert cut
    assert all(source.startswith("client-") for source, _ in cut)
    (lost,) = (
        event.value["begin"]["lost_packets"] for event in faults if event.f == "packet-loss" and "begin" in event.value
    )
    assert all(lost.values())


@pytest.mark.usefixtures("toxiproxy")
def test_a_run_leaves_all_that_its_verdict_rests_on(tmp_path: Path) -> None:
    words = ("run", "--workload", "idempotent", "--nemesis", "kill:leaders", "--time", "15")
    told, folder = run_until_it_shows_something(*words, seed=5, folder=tmp_path)
    assert folder.verdict.exists(), told.stdout + told.stderr
    record = folder.read_record()
    assert (record.workload, record.seed % 100, record.nodes) == ("idempotent", 5, 3)
    history = read_history(folder.history)
    assert {event.f for event in history.faults()} >= {"kill"}
    leaders = {sample.leader for one in read_samples(folder.samples) for sample in one.partitions.values()}
    assert len(leaders - {None}) > 1, "a leader was killed, and another one led"
    assert json.loads(folder.verdict.read_bytes())["valid"] == "valid"
    assert "<svg" in folder.report.read_text()
    again = chaos("judge", folder.path.name, "--json", folder=tmp_path)
    assert json.loads(again.stdout) == json.loads(folder.verdict.read_bytes())


@pytest.mark.usefixtures("toxiproxy")
def test_a_run_that_is_terminated_leaves_no_process(tmp_path: Path) -> None:
    with run_that_has_begun("--time", "600", folder=tmp_path) as (process, cluster):
        assert cluster.is_running
        process.terminate()
        assert process.wait(RUN_TIMEOUT_S) == STATUS
    assert not cluster.is_running


@pytest.mark.usefixtures("toxiproxy")
def test_a_node_that_crashes_is_a_finding(tmp_path: Path) -> None:
    """Killed behind the back of a run without faults; the run starts it again at the end."""
    with run_that_has_begun("--time", "10", "--seed", "3", folder=tmp_path) as (process, cluster):
        crashed = cluster.nodes[2].process
        assert crashed is not None
        assert send_signal(crashed, signal.SIGKILL)
        assert process.wait(RUN_TIMEOUT_S) == EXIT_CODES["anomalies"]
    verdict = json.loads((tmp_path / "run" / "verdict.json").read_bytes())
    (finding,) = (one for one in verdict["findings"] if not one["allowed"])
    assert finding["type"] == "node-ended"
    assert finding["message"].startswith("node 2 ended by itself (exit status -9)")
    assert finding["detail"]["node"] == 2


def test_a_history_without_its_run_is_judged_alike(tmp_path: Path) -> None:
    """A cluster that is there already is used and not broken, by its address alone."""
    up = subprocess.run(
        [sys.executable, "-P", "-m", "penstock", *("up", "--nodes", "1", "--detach", "--port", "0", "--json")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=True,
    )
    bootstrap = json.loads(up.stdout)["bootstrap"]
    try:
        words = ("run", "--workload", "counter", "--bootstrap", bootstrap, "--seed", "1", "--time", "3", "--out")
        for out in ("run", "again"):
            told = chaos(*words, out, folder=tmp_path)
            assert told.returncode == 0, told.stdout + told.stderr
        # A sample is without what a busy node did not answer in time.
        samples = read_samples(tmp_path / "run" / "cluster.jsonl")
        assert {sample.controller for sample in samples} - {None} == {1}
        partitions = [one for sample in samples for one in sample.partitions.values()]
        assert {(one.leader, *one.isr) for one in partitions if one.leader is not None} == {(1, 1)}
        assert max(one.hw or 0 for one in partitions) > 0
    finally:
        subprocess.run(
            [sys.executable, "-P", "-m", "penstock", "down"], cwd=tmp_path, timeout=RUN_TIMEOUT_S, check=True
        )
    (tmp_path / "elsewhere").mkdir()
    history = tmp_path / "elsewhere" / "history.jsonl"
    history.write_bytes((tmp_path / "run" / "history.jsonl").read_bytes())
    told = chaos("judge", str(history), folder=tmp_path)
    assert told.returncode == 0, told.stdout + told.stderr
