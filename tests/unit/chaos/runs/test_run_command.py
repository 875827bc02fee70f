"""What `penstock chaos run` refuses before anything is started."""

from pathlib import Path
from typing import Self

import pytest
from click.testing import CliRunner

from penstock.chaos.links import namespaced_cluster
from penstock.chaos.runs.run_command import run


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--workload", "queues"), "it is one of queue,"),
        (("--workload", "queue", "--nemesis", "rust"), "'rust' is no fault of a real cluster"),
        (("--workload", "queue", "--nemesis", "kill:some"), "'some' is no selector of kill"),
        (("--workload", "queue", "--nemesis", "kill", "--time", "5"), "take at least"),
        (("--workload", "queue", "--nemesis", "kill", "--schedule", "x.json"), "not both"),
        (("--workload", "queue", "--schedule", "x.json"), "x.json cannot be read"),
        (("--workload", "queue", "--schedule", "x.json", "--time", "60"), "--schedule goes without --time"),
        (("--workload", "queue", "--bootstrap", "127.0.0.1:1", "--nemesis", "kill"), "is not broken"),
        (("--workload", "queue", "--bootstrap", "127.0.0.1:1", "--set", "a=b"), "properties of its own"),
        (("--workload", "queue", "--set", "a"), "KEY=VALUE"),
        (("--workload", "queue", "--bootstrap", "127.0.0.1:1", "--links", "proxies"), "no --links"),
        (("--workload", "queue", "--cluster", "apache-kafka", "--links", "namespaces"), "no --links"),
        (
            ("--workload", "queue", "--nemesis", "kill,packet-loss"),
            "this cluster cannot have packet-loss: a proxy passes bytes on",
        ),
        (
            ("--workload", "queue", "--nemesis", "kill,partition", "--cluster", "apache-kafka"),
            "this cluster cannot have partition: Apache Kafka has faults of its processes only",
        ),
    ],
)
def test_what_cannot_be_run_is_refused_with_a_sentence(words: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    told = CliRunner().invoke(run, (*words, "--out", str(tmp_path / "run")))
    assert told.exit_code != 0
    assert sentence in told.output
    assert not (tmp_path / "run").exists()


def test_what_namespaces_need_and_the_machine_does_not_have_is_said_with_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("shutil.which", lambda name: None if name == "nft" else f"/sbin/{name}")
    told = CliRunner().invoke(run, ("--workload", "queue", "--links", "namespaces", "--out", str(tmp_path / "run")))
    assert told.exit_code == 1
    assert "without root (sudo); nft (Debian: apt-get install nftables)\n" in told.output
    assert not (tmp_path / "run").exists()


def test_a_kernel_that_cannot_do_a_fault_is_named_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OldKernel:
        """Networks of one; what else there is of it is not asked."""

        def __init__(self, ends: tuple[int, ...]) -> None:
            assert ends == (), "nothing but the kernel is asked"

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def has_netem(self) -> bool:
            return False

        def has_htb(self) -> bool:
            return True

        def has_resets(self) -> bool:
            return False

    monkeypatch.setattr(namespaced_cluster, "NodeNetworks", OldKernel)
    words = ("--workload", "queue", "--links", "namespaces", "--nemesis", "slow-link,bandwidth,connection-resets")
    told = CliRunner().invoke(run, (*words, "--out", str(tmp_path / "run")))
    assert told.exit_code == 1
    assert "this cluster cannot have connection-resets: this kernel resets no connection" in told.output
    assert "slow-link: this kernel has no netem" in told.output
    assert "bandwidth" not in told.output
    assert not (tmp_path / "run").exists()
