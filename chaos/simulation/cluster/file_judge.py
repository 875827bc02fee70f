"""Judges a simulated cluster by its files alone: at the end, and whenever no process runs, as after a crash of all.

What the nodes say is not asked. What must be there follows from what clients were told, from the metadata that was
committed, and from how far replicas had committed (`replica_judge.py`); what is there is read by plain readers of
their own (`chaos/checkers/log_files.py`, `journal_files.py`).
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping
from uuid import UUID

from ....protocol.ids import NodeId
from ....quorum.metadata.image import PartitionRegistration
from ...checkers.compacted_files import judge_compacted_copies
from ...checkers.journal_files import judge_journals, read_journal
from ...checkers.log_files import PlainLog, read_log, swapped
from ...checkers.moved_folders import PlainDirectory, log_folders, unfinished_moves
from ...checkers.replica_files import Acknowledged, judge_copies, transactions_of
from ...checkers.tables import TableHistory, TableRecord
from ...checkers.transactions import Place, Transaction
from .clients import History
from .machine import Machine
from .replica_judge import ReplicaJudge
from .simulated_tier import SimulatedTier
from .table_clients import TABLE
from .transactional_clients import TransactionHistory

_METADATA = "__cluster_metadata-0"
_NOTE = "replaced-directory"
_NOTE_LINES = 3


class FileJudge:
    """`check_count` counts the replicas that were read."""

    def __init__(
        self, machines: Iterable[Machine], replicas: ReplicaJudge, history: History, *,
        is_compacted: Callable[[str], bool], tier: SimulatedTier | None = None,
    ) -> None:  # fmt: skip
        self.check_count = 0
        self.transactions: TransactionHistory | None = None
        """What transactional clients did, in runs that have some."""
        self.table: TableHistory | None = None
        """What clients of a compacted topic did, in runs that have one."""
        self.keeps_tombstones = True
        """For longer than any replica of the table is away."""
        self.compacted_count = 0
        """Acknowledged records of the table that are gone, in the replica that has the fewest."""
        self._is_compacted = is_compacted
        self._tier = tier
        self._machines = {machine.node_id: machine for machine in machines}
        self._replicas = replicas
        self._history = history

    def look(self, places: Iterable[tuple[str, int]], *, is_end: bool) -> list[str]:
        """While no process runs. Returns sentences; `is_end`: nothing is under way any more."""
        return [
            *(f"{topic}-{index}, files: {one}" for topic, index in places for one in self._look_at(topic, index)),
            *self._look_at_transactions(is_end=is_end),
            *self._look_at_journals(),
        ]

    # Partitions.

    def _look_at(self, topic: str, index: int) -> Iterator[str]:
        registration = self._replicas.registration(topic, index)
        if registration is None:
            return
        # Each of them may be elected, so each must have everything.
        nodes = sorted({*registration.isr, *registration.elr})
        logs: dict[int, PlainLog] = {node: self._log(node, topic, index, registration) for node in nodes}
        self.check_count += len(logs)
        end_offset = self._replicas.committed_end(topic, index)
        if self._is_compacted(topic):
            keeps_tombstones = topic != TABLE or self.keeps_tombstones
            yield from judge_compacted_copies(logs, end_offset=end_offset, keeps_tombstones=keeps_tombstones)
            if topic == TABLE and self.table is not None:
                yield from self._look_at_table(self.table, logs)
            return
        yield from judge_copies(
            logs,
            start_offset=self._replicas.highest_log_start(topic, index),
            end_offset=end_offset,
            acknowledged=self._acknowledged(Place(topic, index)),
        )

    def _look_at_table(self, table: TableHistory, logs: Mapping[int, PlainLog]) -> Iterator[str]:
        acknowledged = {one.offset for one in table.sends if one.offset is not None}
        for node, log in logs.items():
            records = [
                TableRecord(*record) for batch in log.batches if not batch.is_control for record in batch.records or ()
            ]  # fmt: skip
            for sentence in table.judge_files(records, keeps_tombstones=self.keeps_tombstones):
                yield f"node {node}: {sentence}"
            gone = acknowledged - {record.offset for record in records}
            self.compacted_count = max(self.compacted_count, len(gone))

    def _log(self, node: NodeId, topic: str, index: int, registration: PartitionRegistration) -> PlainLog:
        """In the directory in which it is, whatever has become of a move that was under way."""
        machine = self._machines[node]
        folders = log_folders(f"{topic}-{index}", plain_directories(machine), registration.directory_of(node))
        if self._is_compacted(topic):
            segments = [
                swapped(_segments(machine, one, ".log"), _segments(machine, one, ".log.swap")) for one in folders
            ]
            logs = [read_log(one, is_compacted=True) for one in segments]
        else:
            logs = [self._whole(_segments(machine, one, ".log"), topic, index) for one in folders]
        return max(logs, key=lambda log: log.end_offset, default=PlainLog((), "there is no folder"))

    def _whole(self, segments: Mapping[int, bytes], topic: str, index: int) -> PlainLog:
        """With what the tier has before the first of them."""
        return read_log(segments) if self._tier is None else self._tier.joined(segments, topic, index)

    def _acknowledged(self, place: Place) -> Iterator[Acknowledged]:
        if place.topic == self._history.topic:
            for (_, partition), some in self._history.sent.items():
                if partition == place.partition:
                    yield from (Acknowledged(one.offset, one.value) for one in some if one.offset is not None)
        elif self.transactions is not None:
            for transaction in self.transactions.transactions:
                for send in transaction.sends:
                    if send.place == place and send.offset is not None and send.offset >= 0:
                        yield Acknowledged(send.offset, send.value)

    def unfinished_moves(self, places: Iterable[tuple[str, int]]) -> list[str]:
        """What moves between log directories have left to do, on all nodes. Nodes of one log directory have none."""
        found = []
        directories = {
            node: plain_directories(machine)
            for node, machine in self._machines.items()
            if len(machine.log_directories) > 1
        }
        for topic, index in places:
            registration = self._replicas.registration(topic, index)
            if registration is None:
                continue
            for node, some in directories.items():
                assigned = registration.directory_of(NodeId(node)) if node in registration.replicas else None
                for sentence in unfinished_moves(f"{topic}-{index}", some, assigned):
                    found.append(f"node {node}: {sentence}")
        return found

    # Transactions.

    def _look_at_transactions(self, *, is_end: bool) -> Iterator[str]:
        history = self.transactions
        if history is None:
            return
        of_value = {send.value: one for one in history.transactions for send in one.sends}
        decided: dict[str, bool] = {}
        for place in (*history.places, *history.outputs):
            registration = self._replicas.registration(*place)
            if registration is None:
                continue
            for node in registration.isr:
                ended, still_open = transactions_of(self._log(node, *place, registration))
                where = f"{place.topic}-{place.partition}, files of node {node}"
                for one in ended:
                    for value in one.values:
                        yield from (f"{where}: {text}" for text in _judge_end(of_value, decided, value, one.is_commit))
                if is_end and still_open:
                    yield f"{where}: no marker ends the transaction of {still_open[0][:40]!r}"

    # The metadata.

    def _look_at_journals(self) -> Iterator[str]:
        journals = {
            machine.node_id: read_journal(
                _segments(machine, f"{machine.metadata_directory}/{_METADATA}", ".journal")
            )
            for machine in self._machines.values()
            if machine.is_voter
        }  # fmt: skip
        yield from judge_journals(journals, committed_end=0)


def _judge_end(
    of_value: Mapping[bytes, Transaction], decided: dict[str, bool], value: bytes, is_commit: bool
) -> Iterator[str]:  # fmt: skip
    transaction = of_value.get(value)
    if transaction is None:
        yield f"{value[:40]!r} is of no transaction"
        return
    if is_commit and transaction.commit_asked_s is None:
        yield f"the marker commits {value[:40]!r}, and no client asked for that"
    if not is_commit and transaction.is_commit_answered:
        yield f"the marker aborts {value[:40]!r}, and its commit was answered"
    if decided.setdefault(transaction.name, is_commit) != is_commit:
        yield f"{transaction.name} is committed in one place and aborted in another"


def _segments(machine: Machine, folder: str, suffix: str) -> dict[int, bytes]:
    names = machine.files.look_into(folder)
    return {
        int(name.removesuffix(suffix)): bytes(machine.files.look(f"{folder}/{name}") or b"")
        for name in names
        if name.endswith(suffix) and name.removesuffix(suffix).isdigit()
    }


def plain_directories(machine: Machine) -> list[PlainDirectory]:
    """The log directories of a machine, as its files have them."""
    files = machine.files
    found = []
    for path in machine.log_directories:
        names = files.look_into(path)
        notes = {name: bytes(files.look(f"{path}/{name}/{_NOTE}") or b"").decode().split("\n") for name in names}
        found.append(
            PlainDirectory(
                path=path,
                directory_id=_directory_id(bytes(files.look(f"{path}/meta.properties") or b"").decode()),
                folders=tuple(names),
                # Version 0, the id, and an end of the line: what is torn says nothing.
                replaced={name: UUID(lines[1]) for name, lines in notes.items() if len(lines) == _NOTE_LINES},
            )
        )
    return found


def _directory_id(properties: str) -> UUID | None:
    for line in properties.splitlines():
        if line.startswith("directory.id="):
            return UUID(bytes=urlsafe_b64decode(line.removeprefix("directory.id=") + "=="))
    return None
