"""`penstock log dump`: rows of files and folders."""

from __future__ import annotations

import pytest
from closed_logs import FOLDER, stopped_node
from node_disk import node_disk

from penstock.protocol.records import Record
from penstock.storage.inspection.dump import DumpOptions, NotOfALog, dump_rows
from penstock.storage.inspection.rules.dump_rows import as_text, record_row
from penstock.storage.inspection.rules.report import Report


def test_a_folder_is_dumped_with_its_records_in_order() -> None:
    with node_disk() as disk:
        end_offset = stopped_node(disk)
        rows = list(dump_rows(disk.files, FOLDER, DumpOptions(with_records=True), Report()))
        told = [row for row in rows if row["kind"] in ("record", "marker")]
        assert [row["offset"] for row in told] == list(range(end_offset))
        assert told[0] == {"kind": "record", "offset": 0, "timestamp": 1_700_000_000_000, "key": "key-0", "value": "0"}
        assert [row["type"] for row in told if row["kind"] == "marker"][:3] == ["COMMIT", "ABORT", "COMMIT"]
        batches = [row for row in rows if row["kind"] == "batch"]
        assert {row["compression"] for row in batches} == {"none", "gzip", "snappy", "lz4", "zstd"}


def test_only_what_lies_in_the_range_is_dumped() -> None:
    with node_disk() as disk:
        stopped_node(disk)
        options = DumpOptions(with_records=True, start_offset=41, end_offset=46)
        rows = list(dump_rows(disk.files, FOLDER, options, Report()))
        assert [row["offset"] for row in rows if "offset" in row] == [41, 42, 43, 44, 45]
        assert [row["base_offset"] for row in rows if row["kind"] == "batch"] == [40, 43, 44]


def test_every_file_of_a_folder_can_be_dumped() -> None:
    with node_disk() as disk:
        stopped_node(disk)
        kinds = {row["kind"] for row in dump_rows(disk.files, FOLDER, DumpOptions(with_all_files=True), Report())}
        assert kinds == {
            "file",
            "batch",
            "offset_entry",
            "time_entry",
            "aborted_transaction",
            "producer",
            "completed_transaction",
            "leader_epoch",
            "partition_metadata",
        }
        (row,) = dump_rows(disk.files, "/data/recovery-point-offset-checkpoint", DumpOptions(), Report())
        assert row == {"kind": "checkpoint", "topic": "table", "partition": 0, "offset": 120}


def test_what_is_not_intact_is_reported_and_the_rest_dumped() -> None:
    with node_disk() as disk:
        stopped_node(disk)
        path = f"{FOLDER}/{0:020d}.log"
        content = bytearray(disk.files.read(path))
        content[70] ^= 1
        disk.files.write(path, bytes(content))
        report = Report()
        rows = list(dump_rows(disk.files, path, DumpOptions(), report))
        assert [row["base_offset"] for row in rows][:2] == [3, 4]
        assert [one.position for one in report.findings] == [0]


@pytest.mark.parametrize("path", ["/data/nothing", "/data/meta.properties", "/data"])
def test_what_is_no_file_of_a_log_is_refused(path: str) -> None:
    with node_disk() as disk:
        stopped_node(disk)
        with pytest.raises(NotOfALog):
            list(dump_rows(disk.files, path, DumpOptions(), Report()))


def test_what_is_no_text_is_shown_in_base64_and_no_line_breaks_a_line() -> None:
    row = record_row(Record(3, 5, b"\xff", b"a\nb", (("h", None),)), None)
    assert row == {
        "kind": "record",
        "offset": 3,
        "timestamp": 5,
        "key_base64": "/w==",
        "value": "a\nb",
        "headers": [{"key": "h", "value": None}],
    }
    assert (
        as_text(row)
        == '| offset: 3 timestamp: 5 key_base64: /w== value: "a\\nb" headers: [{"key": "h", "value": null}]'
    )
