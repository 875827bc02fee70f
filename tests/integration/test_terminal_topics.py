"""`penstock topic …` against a running broker."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import Result

pytestmark = pytest.mark.integration
Penstock = Callable[..., Result]


def test_topic_is_created_described_altered_and_deleted(penstock: Penstock, topic: str) -> None:
    created = penstock(
        "topic", "create", topic, "-p", 3, "-c", "retention.ms=-1", "-c", "cleanup.policy=compact", "--json"
    )
    assert json.loads(created.stdout) == {"created": [topic], "failed": {}}

    (described,) = json.loads(penstock("topic", "describe", topic, "--json").stdout)["topics"]
    assert described["name"] == topic
    assert described["configs"] == {"cleanup.policy": "compact", "retention.ms": "-1"}
    assert [partition["partition"] for partition in described["partitions"]] == [0, 1, 2]
    for partition in described["partitions"]:
        assert partition["isr"] == partition["replicas"] == [partition["leader"]]
        assert (partition["start_offset"], partition["end_offset"]) == (0, 0)

    penstock("topic", "alter", topic, "-p", 5, "-c", "segment.ms=60000", "-d", "cleanup.policy")
    (altered,) = json.loads(penstock("topic", "describe", topic, "--json").stdout)["topics"]
    assert altered["configs"] == {"retention.ms": "-1", "segment.ms": "60000"}
    assert len(altered["partitions"]) == 5
    assert altered["id"] == described["id"]

    listed = json.loads(penstock("topic", "list", "--json").stdout)["topics"]
    assert {"name": topic, "partitions": 5, "replication_factor": 1} in listed

    deleted = penstock("topic", "delete", topic, "--json")
    assert json.loads(deleted.stdout) == {"deleted": [topic], "failed": {}}
    assert topic not in penstock("topic", "list").stdout


def test_table_of_a_topic_has_a_line_for_each_partition(penstock: Penstock, topic: str) -> None:
    penstock("topic", "create", topic, "-p", 2)
    lines = penstock("topic", "describe", topic).stdout.splitlines()
    assert lines[0].startswith(f"topic {topic}, id ")
    assert lines[1].split() == ["partition", "leader", "replicas", "isr", "start", "offset", "end", "offset"]
    assert [line.split()[0] for line in lines[2:]] == ["0", "1"]


def test_existing_topic_is_an_error_unless_told_otherwise(penstock: Penstock, topic: str) -> None:
    penstock("topic", "create", topic)
    again = penstock("topic", "create", topic, status=1)
    assert "already exists (TOPIC_ALREADY_EXISTS)" in again.stderr
    penstock("topic", "create", topic, "--if-not-exists")


def test_missing_topic_is_an_error_and_is_not_created(penstock: Penstock, topic: str) -> None:
    assert f"Topic {topic!r} does not exist" in penstock("topic", "describe", topic, status=1).stderr
    assert "UNKNOWN_TOPIC_OR_PART" in penstock("topic", "delete", topic, status=1).stderr
    penstock("topic", "delete", topic, "--if-exists")
    assert f"Topic {topic!r} does not exist" in penstock("consume", topic, status=1).stderr
    assert topic not in penstock("topic", "list").stdout


def test_what_the_broker_refuses_is_said_in_its_words(penstock: Penstock, topic: str) -> None:
    assert "TOPIC_EXCEPTION" in penstock("topic", "create", "no/name", status=1).stderr
    assert (
        "Unknown topic config name: no.such" in penstock("topic", "create", topic, "-c", "no.such=1", status=1).stderr
    )
    penstock("topic", "create", topic, "-p", 2)
    assert "2" in penstock("topic", "alter", topic, "-p", 1, status=1).stderr
    assert "INVALID_CONFIG" in penstock("topic", "alter", topic, "-c", "retention.ms=soon", status=1).stderr


def test_one_refused_topic_does_not_stop_the_others(penstock: Penstock, topic: str) -> None:
    result = penstock("topic", "create", topic, "no/name", "--json", status=1)
    outcome = json.loads(result.stdout)
    assert outcome["created"] == [topic]
    assert list(outcome["failed"]) == ["no/name"]


def test_unreachable_broker_is_named_with_the_reason(penstock: Penstock) -> None:
    # No process can listen on the discard port of a machine that tests run on.
    refused = penstock("topic", "list", "--bootstrap", "127.0.0.1:9", status=1)
    assert "127.0.0.1:9: connection refused" in refused.stderr


def test_names_of_topics_are_completed(penstock: Penstock, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    penstock("topic", "create", topic)
    monkeypatch.setenv("_PENSTOCK_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"penstock topic describe {topic[:-1]}")
    monkeypatch.setenv("COMP_CWORD", "3")
    assert f"plain,{topic}" in penstock(status=0).stdout.splitlines()
