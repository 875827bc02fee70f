"""The judge of files finds what replicas and voters have on their disks, whatever any node said."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from penstock.chaos.checkers.records import Sent
from penstock.chaos.checkers.transactions import Place, Send, Transaction
from penstock.chaos.simulation.cluster.clients import History
from penstock.chaos.simulation.cluster.file_judge import FileJudge
from penstock.chaos.simulation.cluster.transactional_clients import TransactionHistory
from penstock.protocol.records import Record, write_batch
from penstock.storage.directories.rules.meta_properties import uuid_text
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.rules.control_records import write_end_transaction_marker

TOPIC = "t"
DIRECTORIES = {"/data/a": UUID(int=1_000), "/data/b": UUID(int=2_000)}


def batch(offset: int, value: bytes) -> bytes:
    return write_batch([Record(offset, 0, None, value)], leader_epoch=0)


def ours(*values: bytes) -> bytes:
    return b"".join(batch(offset, value) for offset, value in enumerate(values))


def machine(node_id: int, logs: Mapping[str, bytes]) -> Any:
    """`logs` by directory."""
    files = MemoryFiles()
    for path, directory_id in DIRECTORIES.items():
        files.make_directories(path)
        files.write(f"{path}/meta.properties", f"version=1\ndirectory.id={uuid_text(directory_id)}\n".encode())
    for path, data in logs.items():
        files.make_directories(f"{path}/{TOPIC}-0")
        files.write(f"{path}/{TOPIC}-0/{0:020}.log", data)
    return SimpleNamespace(
        node_id=node_id, files=files, is_voter=False, log_directories=tuple(DIRECTORIES), metadata_directory="/data"
    )


def judge(
    *logs: Mapping[str, bytes], committed_end: int, acknowledged: Mapping[int, bytes] | None = None,
    transactions: TransactionHistory | None = None, is_end: bool = True,
) -> list[str]:  # fmt: skip
    machines = [machine(node_id, some) for node_id, some in enumerate(logs, 1)]
    registration = SimpleNamespace(
        isr=tuple(range(1, len(logs) + 1)), elr=(), directory_of=lambda _: DIRECTORIES["/data/b"]
    )
    replicas: Any = SimpleNamespace(
        registration=lambda *_: registration, highest_log_start=lambda *_: 0, committed_end=lambda *_: committed_end
    )
    history = History(TOPIC, 1, lambda *_: 0)
    history.sent["p", 0] = [
        Sent(producer="p", number=0, value=value, offset=offset) for offset, value in (acknowledged or {}).items()
    ]
    files = FileJudge(machines, replicas, history, is_compacted=lambda _: False)
    files.transactions = transactions
    return files.look([(TOPIC, 0)], is_end=is_end)


def test_replicas_that_have_what_was_acknowledged_are_right() -> None:
    log = {"/data/b": ours(b"x", b"y")}
    assert judge(log, log, committed_end=2, acknowledged={1: b"y"}) == []


def test_what_is_missing_from_one_replica_s_files_is_found() -> None:
    found = judge({"/data/b": ours(b"x", b"y")}, {"/data/b": ours(b"x")}, committed_end=2, acknowledged={1: b"y"})
    assert [one.split(": ")[1] for one in found] == ["SHORT", "COPIES", "LOST"]
    assert "node 2" in found[0]


def test_a_replica_is_read_where_the_metadata_say_that_it_is() -> None:
    log = {"/data/a": ours(b"old"), "/data/b": ours(b"x", b"y")}
    assert judge(log, committed_end=2, acknowledged={0: b"x"}) == []
    # Elsewhere when it is not there: a disk that was emptied has no id that the metadata know.
    assert judge({"/data/a": ours(b"x", b"y")}, committed_end=2, acknowledged={0: b"x"}) == []


def transactional(value: bytes, *, is_commit: bool | None) -> bytes:
    data = write_batch(
        [Record(0, 0, None, value)], leader_epoch=0, producer_id=7, producer_epoch=0, base_sequence=0,
        is_transactional=True,
    )  # fmt: skip
    if is_commit is None:
        return data
    marker = write_end_transaction_marker(7, 0, is_commit=is_commit, coordinator_epoch=0, now_ms=0)
    return data + (1).to_bytes(8, "big") + marker[8:12] + bytes(4) + marker[16:]


def transactions(*, is_asked: bool, is_answered: bool) -> TransactionHistory:
    one = Transaction("one", sends=[Send(Place(TOPIC, 0), b"v", 0)], is_commit_answered=is_answered)
    one.commit_asked_s = 1.0 if is_asked else None
    return TransactionHistory((Place(TOPIC, 0),), (), transactions=[one])


def test_a_marker_says_what_the_client_was_told() -> None:
    committed, aborted = ({"/data/b": transactional(b"v", is_commit=one)} for one in (True, False))
    asked = transactions(is_asked=True, is_answered=False)
    answered = transactions(is_asked=True, is_answered=True)
    begun = transactions(is_asked=False, is_answered=False)
    for history, log in ((asked, committed), (asked, aborted), (answered, committed), (begun, aborted)):
        assert judge(log, committed_end=2, transactions=history) == []
    assert "its commit was answered" in judge(aborted, committed_end=2, transactions=answered)[0]
    assert "no client asked for that" in judge(committed, committed_end=2, transactions=begun)[0]


def test_a_transaction_may_be_open_after_a_crash_and_not_in_the_end() -> None:
    log = {"/data/b": transactional(b"v", is_commit=None)}
    history = transactions(is_asked=False, is_answered=False)
    assert judge(log, committed_end=1, transactions=history, is_end=False) == []
    assert "no marker ends" in judge(log, committed_end=1, transactions=history)[0]


def test_a_record_of_a_zombie_is_of_no_transaction() -> None:
    log = {"/data/b": transactional(b"zombie", is_commit=False)}
    history = TransactionHistory((Place(TOPIC, 0),), ())
    assert "is of no transaction" in judge(log, committed_end=2, transactions=history)[0]
