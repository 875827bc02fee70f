"""The folder of a run."""

import shlex
from pathlib import Path

import msgspec
import pytest

from penstock.chaos.histories.run_folder import RunFolder, RunRecord
from penstock.local.errors import ClusterError

RECORD = RunRecord(
    workload="queue",
    nemeses=("partition", "kill"),
    seconds=30,
    nodes=3,
    seed=7,
    cluster="penstock",
    version="0.1",
    links="namespaces",
    properties={"log.segment.bytes": "1 000"},
)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.create()
    folder.write_record(RECORD)
    assert folder.read_record() == RECORD


def test_the_line_that_repeats_a_run_holds_all_that_was_asked_for() -> None:
    words = shlex.split(RECORD.replay)
    assert words[:3] == ["penstock", "chaos", "run"]
    options = dict(zip(words[3::2], words[4::2], strict=True))
    assert options == {
        "--workload": "queue",
        "--nemesis": "partition,kill",
        "--time": "30",
        "--seed": "7",
        "--nodes": "3",
        "--cluster": "penstock",
        "--links": "namespaces",
        "--set": "log.segment.bytes=1 000",
    }


def test_only_links_of_penstock_are_in_the_line_that_repeats_a_run() -> None:
    assert "--links" not in shlex.split(msgspec.structs.replace(RECORD, cluster="apache-kafka").replay)
    assert "--links" not in shlex.split(msgspec.structs.replace(RECORD, cluster="bootstrap", bootstrap="a:1").replay)


def test_links_of_a_run_that_does_not_say_go_through_proxies(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_record(RECORD)
    folder.run.write_text(folder.run.read_text().replace('"links": "namespaces",', ""))
    assert folder.read_record().links == "proxies"


def test_a_run_with_a_schedule_is_repeated_from_its_file() -> None:
    words = shlex.split(msgspec.structs.replace(RECORD, schedule="faults.json").replay)
    assert "--nemesis" not in words
    assert words[words.index("--schedule") + 1] == "faults.json"
    assert "--time" not in words, "the file has the length"


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").touch()
    with pytest.raises(ClusterError, match="not empty"):
        RunFolder(tmp_path).create()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "has no run.json"), (b"{}", "does not describe a run"), (b"[", "does not describe a run")],
)
def test_a_folder_that_holds_no_run_is_refused(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    if content is not None:
        (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(ClusterError, match=sentence):
        RunFolder(tmp_path).read_record()


def test_a_record_of_another_form_is_refused(tmp_path: Path) -> None:
    RunFolder(tmp_path).write_record(msgspec.structs.replace(RECORD, format="penstock-run/2"))
    with pytest.raises(ClusterError, match="penstock-run/2"):
        RunFolder(tmp_path).read_record()


def test_a_history_is_found_as_it_is_or_compressed(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with pytest.raises(ClusterError, match=r"has no history\.jsonl"):
        folder.found_history()
    (tmp_path / "history.jsonl.gz").touch()
    assert folder.found_history().name == "history.jsonl.gz"
    folder.history.touch()
    assert folder.found_history() == folder.history
