"""`penstock log dump`, `verify` and `compact` as a person calls them, on a folder that Apache Kafka wrote."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

import pytest
from click.testing import CliRunner, Result

from penstock import cli
from penstock.broker.groups.classic.records import OffsetCommitValue, offset_commit_key, offset_commit_value
from penstock.broker.operator_commands.log_decoders import decode_offsets_record, decode_transaction_record
from penstock.broker.transactions.transaction_records import (
    TRANSACTION_LOG_KEY,
    TRANSACTION_LOG_VALUE,
    PartitionsOfTopic,
    TransactionLogKey,
    TransactionLogValue,
)
from penstock.protocol.errors import CorruptData
from penstock.protocol.records import Record, write_batch

GOLDEN = Path(__file__).parents[3] / "golden" / "kafka-4.3.1-log-folder.zip"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with ZipFile(GOLDEN) as archive:
        archive.extractall(tmp_path)
    return tmp_path / "golden-0"


def run(*arguments: str | Path, status: int = 0) -> Result:
    result = CliRunner().invoke(cli.main, ["log", *map(str, arguments)], prog_name="penstock")
    assert result.exit_code == status, result.output
    return result


def rows(*arguments: str | Path, status: int = 0) -> list[dict[str, object]]:
    return [json.loads(line) for line in run(*arguments, "--json", status=status).stdout.splitlines()]


def test_a_folder_is_dumped_for_people_and_for_programs(folder: Path) -> None:
    told = rows("dump", folder, "--records")
    assert sum(row["kind"] == "record" for row in told) + sum(row["kind"] == "marker" for row in told) == 318
    text = run("dump", folder, "--records", "--limit", "4").stdout.splitlines()
    assert len(text) == 4
    assert text[0].startswith("file path: ")
    assert text[1].startswith("batch position: 0 base_offset: 0 ")
    assert text[2].startswith("| offset: 0 ")


def test_several_files_are_dumped_one_after_the_other(folder: Path) -> None:
    kinds = [row["kind"] for row in rows("dump", folder / "partition.metadata", folder / "leader-epoch-checkpoint")]
    assert kinds == ["partition_metadata", "leader_epoch"]


def test_an_intact_folder_ends_with_status_0_and_a_damaged_one_with_1(folder: Path) -> None:
    assert "318 records" in run("verify", folder).stdout
    log = folder / f"{20:020d}.log"
    data = bytearray(log.read_bytes())
    data[65] ^= 1
    log.write_bytes(data)
    result = run("verify", folder.parent, status=1)
    assert f"wrong: {log} at 0: the batch does not have its CRC" in result.stdout
    (report,) = rows("verify", folder, status=1)
    assert {"path": str(log), "position": 0, "sentence": "the batch does not have its CRC"} in report["findings"]  # type: ignore[operator]
    run("dump", folder, status=1)


@pytest.mark.parametrize("arguments", [["dump", "nothing"], ["verify", "nothing"], ["verify", "."]])
def test_what_is_no_log_is_refused_in_a_sentence(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments, status=1).output.startswith("Error: ")


def test_a_topic_that_is_not_known_to_be_compacted_is_not(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    told = run("compact", folder, "--high-watermark", "318", status=1)
    assert "--metadata" in told.output
    told = run("compact", folder, "--high-watermark", "318", "--set", "cleanup.policy=delete", status=1)
    assert "would lose every record" in told.output
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_folder_of_apache_kafka_is_compacted(folder: Path) -> None:
    told = run("compact", folder, "--high-watermark", "318", "--set", "cleanup.policy=compact", "--dry-run").output
    assert told.startswith("Would compact offsets 0 to ")
    done = rows("compact", folder, "--high-watermark", "318", "--set", "cleanup.policy=compact")[0]
    assert done["kept_records"] < done["read_records"]  # type: ignore[operator]
    run("verify", folder)


def test_records_of_internal_topics_are_shown_as_what_they_mean(tmp_path: Path) -> None:
    key, value = offset_commit_key("group", "topic", 3), offset_commit_value(OffsetCommitValue(7, 1, "note", 1000))
    assert decode_offsets_record(key, value)["value"]["offset"] == 7
    assert decode_offsets_record(key, None) == {
        "type": "offset_commit",
        "key": {"group": "group", "topic": "topic", "partition": 3},
        "value": None,
    }
    assert decode_offsets_record(b"\0\x50", b"x")["key_base64"] == "AFA="
    with pytest.raises(CorruptData, match="offset_commit"):
        decode_offsets_record(key, b"\0\1")
    state = TransactionLogValue(9, -1, -1, 0, -1, 1000, 0, (PartitionsOfTopic("t", (0, 1)),), 1, 1, 2)
    decoded = decode_transaction_record(
        TRANSACTION_LOG_KEY.write(TransactionLogKey("id")), TRANSACTION_LOG_VALUE.write(state)
    )
    assert decoded["key"] == {"transactional_id": "id"}
    assert decoded["value"]["partitions"] == [{"topic": "t", "indexes": [0, 1]}]
    # By the folder's name, unless told otherwise.
    internal = tmp_path / "__consumer_offsets-4"
    internal.mkdir()
    (internal / f"{0:020d}.log").write_bytes(write_batch([Record(0, 1000, key, value)]))
    assert rows("dump", internal, "--records")[-1]["type"] == "offset_commit"
    assert "type" not in rows("dump", internal, "--records", "--decoder", "none")[-1]


def test_a_folder_of_apache_kafka_is_exported_once(folder: Path, tmp_path: Path) -> None:
    archive = tmp_path / "golden.tar.gz"
    run("export", folder, tmp_path / "golden.zip", "--high-watermark", "318", status=2)
    assert "--high-watermark" in run("export", folder, archive, status=1).output
    assert not archive.exists()
    (told,) = rows("export", folder, archive, "--high-watermark", "318")
    assert (told["start_offset"], told["end_offset"], told["records"]) == (0, 318, 318)
    assert "exists already" in run("export", folder, archive, "--high-watermark", "318", status=1).output
    refused = run("import", archive, "--into", folder, status=1)
    assert "is not in the log directory of a node" in refused.output
