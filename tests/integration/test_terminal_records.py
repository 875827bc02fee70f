"""`penstock produce` and `penstock consume` against a running broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from penstock.protocol.murmur2 import partition_of_key

pytestmark = pytest.mark.integration
Penstock = Callable[..., Result]


def test_keys_are_placed_as_the_java_client_does(penstock: Penstock, topic: str) -> None:
    penstock("topic", "create", topic, "-p", 7)
    keys = [f"key-{number}" for number in range(200)]
    penstock("produce", topic, "-k", ":", stdin="".join(f"{key}:{key}\n" for key in keys))
    lines = penstock("consume", topic, "--show", "key,partition").stdout.splitlines()
    placed = dict(line.split("\t") for line in lines)
    assert placed == {key: str(partition_of_key(key.encode(), 7)) for key in keys}


def test_records_round_trip_as_json_lines(penstock: Penstock, topic: str, tmp_path: Path) -> None:
    penstock("topic", "create", topic, "-p", 2)
    records: list[dict[str, object]] = [
        {"key": "k", "value": "é", "headers": [{"key": "h", "value": "1"}, {"key": "h", "value": None}]},
        {"key": None, "value": None, "headers": []},
        {"key": "", "value": "", "headers": []},
        {"key_base64": "/w==", "value_base64": "/gA=", "headers": [{"key": "b", "value_base64": "/w=="}]},
    ]
    for number, record in enumerate(records):
        record |= {"partition": number % 2, "timestamp": 1_357_034_400_000 + number}
    file = tmp_path / "records.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    sent = json.loads(penstock("produce", topic, str(file), "--json-lines", "--json").stdout)
    assert (sent["records"], sent["failed"], sent["error"]) == (4, 0, None)
    assert sent["partitions"] == {
        "0": {"records": 2, "first_offset": 0, "last_offset": 1},
        "1": {"records": 2, "first_offset": 0, "last_offset": 1},
    }
    read = [json.loads(line) for line in penstock("consume", topic, "--json").stdout.splitlines()]
    read.sort(key=lambda record: int(record["timestamp"]))
    for number, (record, got) in enumerate(zip(records, read, strict=True)):
        assert got == {"topic": topic, "offset": number // 2, "timestamp_type": "CreateTime", **record}


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_compressed_records_come_back(penstock: Penstock, topic: str, compression: str) -> None:
    penstock("topic", "create", topic)
    lines = "".join(f"line {number}\n" for number in range(5000))
    penstock("produce", topic, "-z", compression, stdin=lines)
    assert penstock("consume", topic).stdout == lines


def test_positions_choose_what_is_read(penstock: Penstock, topic: str) -> None:
    penstock("topic", "create", topic)
    lines = [json.dumps({"value": str(number), "timestamp": 1_000_000 + number * 1000}) for number in range(10)]
    penstock("produce", topic, "--json-lines", stdin="\n".join(lines))

    def read(*arguments: str | int) -> str:
        return " ".join(penstock("consume", topic, *arguments).stdout.split())

    assert read("--from", 7) == "7 8 9"
    assert read("--from", 2, "--to", 4) == "2 3"
    assert read("--from", "-2") == "8 9"
    assert read("--to", "-8") == "0 1"
    assert read("--from", "@1003500", "--to", "@1006000") == "4 5"
    assert read("--from", "1970-01-01T00:16:48Z") == "8 9"
    assert read("--from", "-1h") == ""
    assert read("--from", "latest") == ""
    assert read("--from", 99) == ""
    assert read("-n", 3) == "0 1 2"


def test_partition_can_be_chosen(penstock: Penstock, topic: str) -> None:
    penstock("topic", "create", topic, "-p", 3)
    penstock("produce", topic, "-p", 2, stdin="only\n")
    penstock("produce", topic, "--partitioner", "round-robin", stdin="a\nb\nc\n")
    assert penstock("consume", topic, "-p", 2).stdout.split() == ["only", "c"]
    assert "has no partition 3; its last one is 2" in penstock("produce", topic, "-p", 3, stdin="x", status=1).stderr
    assert "has no partition 3; its last one is 2" in penstock("consume", topic, "-p", 3, status=1).stderr


def test_partitioner_of_the_users_own_decides(
    penstock: Penstock, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    penstock("topic", "create", topic, "-p", 3)
    (tmp_path / f"own_{topic[-1]}.py").write_text(
        "def last(key, value, partition_count): return partition_count - 1\n"
        "def wrong(key, value, partition_count): return partition_count\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/"])
    penstock("produce", topic, "--partitioner", f"own_{topic[-1]}:last", stdin="x\n")
    assert penstock("consume", topic, "-p", 2).stdout == "x\n"
    wrong = penstock("produce", topic, "--partitioner", f"own_{topic[-1]}:wrong", stdin="x\n", status=1)
    assert "for partition 3" in wrong.stderr


def test_headers_and_null_of_text_lines(penstock: Penstock, topic: str) -> None:
    penstock("topic", "create", topic)
    penstock("produce", topic, "-k", ":", "--null", "NULL", "-H", "a=1", stdin="NULL:x\ny:NULL\n")
    shown = penstock("consume", topic, "--format", "{key}|{value}|{headers}", "--null", "~").stdout
    assert shown == "~|x|a=1\ny|~|a=1\n"


def test_line_that_is_no_record_is_named_and_what_came_before_is_kept(penstock: Penstock, topic: str) -> None:
    penstock("topic", "create", topic)
    result = penstock("produce", topic, "-k", ":", stdin="a:1\nb\nc:3\n", status=1)
    assert "Line 2 is not a record" in result.stderr
    assert penstock("consume", topic).stdout == "1\n"


def test_record_that_the_broker_refuses_fails_the_command(penstock: Penstock, topic: str) -> None:
    penstock("topic", "create", topic, "-c", "cleanup.policy=compact")
    result = penstock("produce", topic, "--json", stdin="a record without a key\n", status=1)
    assert json.loads(result.stdout)["failed"] == 1
    assert "1 record failed" in result.stderr


def test_without_acknowledgements_records_arrive_too(penstock: Penstock, topic: str) -> None:
    penstock("topic", "create", topic)
    penstock("produce", topic, "--acks", 0, stdin="a\nb\n")
    # The producer was not told when they had arrived, so the end may be read too early: follow instead.
    assert penstock("consume", topic, "--follow", "-n", 2).stdout == "a\nb\n"


def test_usage_errors_have_status_two(penstock: Penstock, topic: str) -> None:
    for arguments in (
        ("consume", topic, "--from", "soon"),
        ("consume", topic, "--follow", "--to", 3),
        ("consume", topic, "--show", "size"),
        ("consume", topic, "--json", "--format", "{key}"),
        ("produce", topic, "--partitioner", "no_such:function"),
        ("produce", topic, "--acks", 1, "--idempotence"),
        ("produce", topic, "--json-lines", "-k", ":"),
        ("produce", topic, "--bootstrap", "here:there"),
    ):
        assert "Error: " in penstock(*arguments, status=2).stderr


def test_described_group_tells_its_lag(penstock: Penstock, topic: str) -> None:
    penstock("topic", "create", topic, "--partitions", 2)
    penstock("produce", topic, "--partition", 0, stdin="a\nb\nc\n")
    group = f"{topic}-group"
    penstock("consume", topic, "--group", group, "--quiet", "--max-messages", 3)
    penstock("produce", topic, "--partition", 0, stdin="d\ne\n")
    assert "lag 2\n" in penstock("group", "describe", group).output
    (told,) = json.loads(penstock("group", "describe", group, "--json").output)["groups"]
    assert told["lag"] == 2
    assert (0, 3, 5, 2) in {
        (part["partition"], part["committed"], part["end_offset"], part["lag"]) for part in told["partitions"]
    }
