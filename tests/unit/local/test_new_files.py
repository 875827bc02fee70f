"""What a start that failed leaves in a folder: what was there before, and what others put there."""

from __future__ import annotations

from pathlib import Path

from penstock.local.new_files import NewFiles


def test_new_files_go_and_changed_ones_are_as_they_were(tmp_path: Path) -> None:
    record, log, data = tmp_path / "cluster.json", tmp_path / "node-1.log", tmp_path / "node-1"
    record.write_text("before")
    made = NewFiles(tmp_path)
    made.note((log, data), (record,))
    record.write_text("after")
    log.write_text("line")
    data.mkdir()
    (data / "file").write_text("x")
    (tmp_path / "foreign").write_text("y")
    made.remove()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cluster.json", "foreign"]
    assert record.read_text() == "before"


def test_data_that_were_there_stay(tmp_path: Path) -> None:
    data, log = tmp_path / "node-1", tmp_path / "node-1.log"
    data.mkdir()
    (data / "records").write_text("x")
    log.write_text("one\n")
    made = NewFiles(tmp_path)
    made.note((data, log), ())
    (data / "more").write_text("y")
    log.write_text("one\ntwo\n")
    made.remove()
    assert {path.name for path in data.iterdir()} == {"records", "more"}
    # Why it failed stands there.
    assert log.read_text() == "one\ntwo\n"


def test_folders_go_unless_another_program_uses_them_too(tmp_path: Path) -> None:
    mine, other = tmp_path / "new" / "mine", tmp_path / "new" / "other"
    made = NewFiles(mine)
    mine.mkdir(parents=True)
    other.mkdir()
    made.remove()
    assert not mine.exists()
    assert other.exists()
    other.rmdir()
    made.remove()
    assert not (tmp_path / "new").exists()
    assert tmp_path.exists()
