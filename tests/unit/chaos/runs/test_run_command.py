"""What `penstock chaos run` refuses before anything is started."""

from pathlib import Path

import pytest
from click.testing import CliRunner

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
    ],
)
def test_what_cannot_be_run_is_refused_with_a_sentence(words: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    told = CliRunner().invoke(run, (*words, "--out", str(tmp_path / "run")))
    assert told.exit_code != 0
    assert sentence in told.output
    assert not (tmp_path / "run").exists()
