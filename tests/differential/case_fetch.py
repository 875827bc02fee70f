"""Fetch: limits, offsets out of range, epochs, isolation, and sessions as they evolve (KIP-227)."""

from __future__ import annotations

from typing import Any

from differential.record_batches import batch
from differential.script import TIMEOUT_MS, Run, case

from penstock.protocol.apis import ApiKey
from penstock.protocol.records import Record, write_batch

FINAL, FIRST = -1, 0
UNLIMITED = 2**31 - 1
SESSIONS_SINCE = 7
FORGETTING_WITH_NAMES = 12
AN_UNKNOWN_ID = 12345


def at(offset: int, partition: int = 0, max_bytes: int = 1_000_000, **rest: Any) -> dict[str, Any]:
    return {"partition": partition, "fetch_offset": offset, "partition_max_bytes": max_bytes, **rest}


def fetch(run: Run, step: str, *topics: dict[str, Any], **values: Any) -> Any:
    asked = {"max_wait": 1, "min_bytes": 0, "max_bytes": UNLIMITED, "isolation_level": 0, **values}
    if run.version <= 14:
        asked.setdefault("replica_id", -1)
    return run.ask(step, ApiKey.FETCH, topics=list(topics), **asked)


@case(ApiKey.FETCH)
def fetch_records(run: Run) -> None:
    name, empty = run.create("filled", 2), run.create("empty")
    first, second = batch(run.base_ms, 3), batch(run.base_ms + 10, 2)
    run.produced(name, first)
    run.produced(name, second)
    run.produced(name, write_batch([Record(0, run.base_ms, b"k", b"v" * 2000)], compression=1))
    run.produced(name, batch(run.base_ms), 1)
    topic = run.fetch_topic
    for offset in (0, 1, 2, 3, 4, 5, 6):
        fetch(run, f"from {offset}", topic(name, at(offset)))
    for offset in (7, 100, -1, -2, -(2**63), 2**63 - 1):
        fetch(run, f"out of range: {offset}", topic(name, at(offset)))
        fetch(run, f"of an empty partition: {offset}", topic(empty, at(offset)))
    fetch(run, "of an empty partition", topic(empty, at(0)))
    for limit in (0, 1, -1, len(first) - 1, len(first), len(first) + 1, len(first) + len(second)):
        fetch(run, f"{limit} bytes of the partition", topic(name, at(0, max_bytes=limit)))
        fetch(run, f"{limit} bytes in all", topic(name, at(0), at(0, 1)), max_bytes=limit)
        fetch(run, f"{limit} bytes of each", topic(name, at(0, max_bytes=limit), at(0, 1, max_bytes=limit)))
    fetch(run, "both partitions", topic(name, at(0), at(0, 1)))
    fetch(run, "in the other order", topic(name, at(0, 1), at(0)))
    fetch(run, "two topics", topic(empty, at(0)), topic(name, at(3)))
    fetch(run, "unknown partition", topic(name, at(0, 9), at(0, -1), at(6)))
    fetch(run, "partition twice", topic(name, at(0), at(3)))
    fetch(run, "topic twice", topic(name, at(0)), topic(name, at(0, 1)))
    fetch(run, "no partitions", topic(name))
    fetch(run, "nothing")
    for isolation in (1, 2, -1):
        fetch(run, f"isolation {isolation}", topic(name, at(0)), isolation_level=isolation)
    for epoch in (0, 1, 99, -2):
        fetch(run, f"leader epoch {epoch}", topic(name, at(0, current_leader_epoch=epoch)))
        fetch(run, f"last fetched epoch {epoch}", topic(name, at(3, last_fetched_epoch=epoch)))
    fetch(run, "log start offset", topic(name, at(0, log_start_offset=5)))
    fetch(run, "rack", topic(name, at(6)), rack_id="somewhere")
    fetch(run, "waits a little", topic(name, at(6)), min_bytes=1, max_wait=20)
    fetch(run, "needs more than there is", topic(name, at(0)), min_bytes=100_000, max_wait=20)
    fetch(run, "needs nothing", topic(name, at(6)), min_bytes=-1, max_wait=10_000)
    fetch(run, "an error does not wait", topic(name, at(99)), min_bytes=1, max_wait=10_000)
    fetch(run, "no waiting", topic(name, at(6)), min_bytes=1, max_wait=0)
    fetch(run, "negative waiting", topic(name, at(6)), min_bytes=1, max_wait=-1)
    unknown = {**topic(run.name("unknown"), at(0)), "topic_id": _id(AN_UNKNOWN_ID)}
    fetch(run, "unknown topic", unknown)
    fetch(run, "unknown and known", unknown, topic(name, at(6)))
    if run.version < 13:
        fetch(run, "empty name", topic("", at(0)))
        fetch(run, "invalid name", topic("a b", at(0)))
    else:
        fetch(run, "no id", {**topic(name, at(0)), "topic_id": None})


@case(ApiKey.FETCH)
def fetch_after_deletion(run: Run) -> None:
    name = run.create()
    run.produced(name, batch(run.base_ms, 3))
    run.produced(name, batch(run.base_ms, 3))
    wanted = [{"partition_index": 0, "offset": 4}]
    run.quiet(ApiKey.DELETE_RECORDS, topics=[{"name": name, "partitions": wanted}], timeout=TIMEOUT_MS)
    for offset in (0, 3, 4, 5):
        fetch(run, f"from {offset}", run.fetch_topic(name, at(offset)))


@case(ApiKey.FETCH, versions=range(SESSIONS_SINCE, 19))
def fetch_sessions(run: Run) -> None:
    name, other, late = run.create("t", 3), run.create("other"), run.name("late")
    topic = run.fetch_topic
    for partition in range(2):
        run.produced(name, batch(run.base_ms, 2), partition)

    def ask(step: str, *topics: dict[str, Any], session: int, epoch: int, **values: Any) -> Any:
        return fetch(run, step, *topics, session_id=session, session_epoch=epoch, **values)

    answer = ask("opens a session", topic(name, at(0), at(0, 1), at(0, 2)), session=0, epoch=FIRST)
    session = int(answer["session_id"])
    ask("nothing changed", session=session, epoch=1)
    ask("moves on", topic(name, at(2), at(2, 1)), session=session, epoch=2)
    ask("is at the end", session=session, epoch=3)
    run.produced(name, batch(run.base_ms, 1), 2)
    ask("hears of new records", session=session, epoch=4)
    ask("and of them again", session=session, epoch=5)
    ask("adds a topic", topic(other, at(0)), session=session, epoch=6)
    ask("adds an unknown partition", topic(other, at(0, 5)), session=session, epoch=7)
    ask("the error is told again", session=session, epoch=8)
    forgotten = [{"topic": other, "topic_id": run.ids[other], "partitions": [5]}]
    ask("forgets it", session=session, epoch=9, forgotten_topics_data=forgotten)
    ask("forgets what is not there", session=session, epoch=10, forgotten_topics_data=forgotten)
    ask("wrong epoch", session=session, epoch=99)
    ask("goes on with the right epoch", session=session, epoch=11)
    ask("same epoch again", session=session, epoch=11)
    ask("no such session", session=session ^ 0x5555, epoch=12)
    ask("out of range", topic(name, at(77)), session=session, epoch=12)
    ask("out of range again", session=session, epoch=13)
    wanted = [{"partition_index": 1, "offset": 1}]
    run.quiet(ApiKey.DELETE_RECORDS, topics=[{"name": name, "partitions": wanted}], timeout=TIMEOUT_MS)
    ask("log start moved", topic(name, at(0)), session=session, epoch=14)
    for step, epoch in (("closes", FINAL), ("is closed", 15)):
        ask(step, session=session, epoch=epoch)
    again = int(ask("opens another", topic(name, at(2)), session=0, epoch=FIRST)["session_id"])
    ask("replaces it", topic(name, at(2, 1)), session=again, epoch=FIRST)
    ask("the replaced one is gone", session=again, epoch=1)
    ask("full, outside any session", topic(name, at(2)), session=0, epoch=FINAL)
    ask("negative epoch", topic(name, at(2)), session=0, epoch=-2)
    ask("epoch without session", topic(name, at(2)), session=0, epoch=5)
    ask("closes what does not exist", topic(name, at(2)), session=12345, epoch=FINAL)
    ask("full with nothing", session=0, epoch=FIRST)
    ask("sessionless with nothing", session=0, epoch=FINAL)
    missing = {**topic(late, at(0)), "topic_id": _id(AN_UNKNOWN_ID)}
    opened = ask("with an unknown topic", missing, topic(name, at(0)), session=0, epoch=FIRST)
    if opened["session_id"]:
        ask("the unknown topic again", session=int(opened["session_id"]), epoch=1)


@case(ApiKey.FETCH, versions=(11, 12, 13, 18))
def fetch_session_of_a_deleted_topic(run: Run) -> None:
    name, other = run.create("t"), run.create("other")
    opened = fetch(run, "opens", run.fetch_topic(name, at(0)), run.fetch_topic(other, at(0)), session_epoch=FIRST)
    session = int(opened["session_id"])
    run.quiet(ApiKey.DELETE_TOPICS, topics=[{"name": name, "topic_id": None}], timeout=TIMEOUT_MS)
    run.wait_gone(name)
    _wait_not_led(run, name)
    fetch(run, "hears of it", session_id=session, session_epoch=1)
    fetch(run, "and again", session_id=session, session_epoch=2)
    old = run.ids[name]
    run.create("t")
    run.names.topic(old, f"{name} before")
    fetch(run, "the topic is made anew", session_id=session, session_epoch=3)


@case(ApiKey.FETCH)
def fetch_as_a_replica(run: Run) -> None:
    name = run.create()
    run.produced(name, batch(run.base_ms, 2))
    for replica in (-2, -3) if run.version > 4 else (-2,):
        identity = {"replica_id": replica, "replica_state": {"replica_id": replica, "replica_epoch": -1}}
        fetch(run, f"replica {replica}", run.fetch_topic(name, at(0)), **identity)


def _wait_not_led(run: Run, name: str) -> None:
    def is_unknown() -> bool:
        asked = {"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]}
        (topic,) = run.quiet(ApiKey.LIST_OFFSETS, replica_id=-1, topics=[asked], timeout=TIMEOUT_MS)["topics"]
        return bool(topic["partitions"][0]["error_code"] == 3)

    run.wait_for(is_unknown)


def _id(number: int) -> Any:
    from uuid import UUID

    return UUID(int=number)
