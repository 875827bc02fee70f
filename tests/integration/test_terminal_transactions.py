"""`penstock transactions …` against a running broker."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import Result
from confluent_kafka import Producer
from waiting import wait_for

pytestmark = pytest.mark.integration
Penstock = Callable[..., Result]
TIMEOUT_S = 60


def begun(bootstrap: str, topic: str) -> Producer:
    """A producer, named after the topic, with an open transaction that has written to its partition 0."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce(topic, b"value", partition=0)
    assert producer.flush(TIMEOUT_S) == 0
    return producer


def test_open_transactions_are_listed_and_described(penstock: Penstock, bootstrap: str, topic: str) -> None:
    penstock("topic", "create", topic)
    producer = begun(bootstrap, topic)
    (described,) = json.loads(penstock("transactions", "describe", topic, "--json").stdout)["transactions"]
    assert described["state"] == "Ongoing"
    assert described["partitions"] == [{"topic": topic, "partition": 0}]
    assert described["started_ms"] is not None

    def listed(*options: str) -> list[str]:
        found = json.loads(penstock("transactions", "list", "--json", *options).stdout)["transactions"]
        return [one["transactional_id"] for one in found]

    assert topic in listed()
    assert listed("--state", "Ongoing", "--pattern", f"{topic}.*") == [topic]
    assert listed("--producer-id", str(described["producer_id"])) == [topic]
    assert topic not in listed("--running-longer-ms", "3600000")
    lines = penstock("transactions", "describe", topic).stdout.splitlines()
    assert f"{topic}-0" in lines[1]

    producer.commit_transaction(TIMEOUT_S)

    def is_complete() -> bool:
        (ended,) = json.loads(penstock("transactions", "describe", topic, "--json").stdout)["transactions"]
        return (ended["started_ms"], ended["partitions"]) == (None, [])

    # A commit is answered once it is decided; the markers are written afterwards.
    wait_for(is_complete, "the markers are written")
    assert topic not in listed("--state", "Ongoing")


def test_a_transaction_that_its_coordinator_knows_does_not_hang(penstock: Penstock, bootstrap: str, topic: str) -> None:
    penstock("topic", "create", topic)
    producer = begun(bootstrap, topic)
    found = penstock("transactions", "find-hanging", "--topic", topic, "--running-longer-ms", 0, "--json")
    assert json.loads(found.stdout) == {"hanging": []}
    assert "No transaction hangs." in penstock("transactions", "find-hanging", "--topic", topic, "-p", 0).stderr
    producer.abort_transaction(TIMEOUT_S)


def test_a_transaction_is_aborted_in_one_partition(penstock: Penstock, bootstrap: str, topic: str) -> None:
    penstock("topic", "create", topic)
    producer = begun(bootstrap, topic)
    wrong = penstock("transactions", "abort", "--topic", topic, "-p", 0, "--start-offset", 5, status=1)
    assert f"No transaction begins at offset 5 of {topic}-0" in wrong.stderr
    done = penstock("transactions", "abort", "--topic", topic, "-p", 0, "--start-offset", 0, "--json")
    assert json.loads(done.stdout)["aborted"]["start_offset"] == 0
    penstock("transactions", "abort", "--topic", topic, "-p", 0, "--start-offset", 0, status=1)
    producer.abort_transaction(TIMEOUT_S)


def test_what_does_not_exist_is_an_error(penstock: Penstock, topic: str) -> None:
    penstock("topic", "create", topic)
    missing = penstock("transactions", "describe", topic, status=1)
    assert f"Transactional id {topic!r} does not exist" in missing.stderr
    penstock("transactions", "find-hanging", "-p", 0, status=2)
    pattern = penstock("transactions", "list", "--pattern", "(", status=1)
    assert "INVALID_REGULAR_EXPRESSION" in pattern.stderr
    absent = penstock("transactions", "abort", "--topic", topic, "-p", 9, "--start-offset", 0, status=1)
    assert f"Partition {topic}-9 does not exist" in absent.stderr
