"""Histories told line by line in tests, and a model of a correct cluster that makes them at random."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from penstock.chaos.checkers.finding import Checked, Finding
from penstock.chaos.histories.operation import EventType, Header, History, Operation


class Told:
    """A history in the making. Each event takes a millisecond."""

    def __init__(self, header: Header | None = None) -> None:
        self.header = header or Header(workload="queue")
        self.operations: list[Operation] = []
        self._open: dict[int, tuple[str, Any, bool]] = {}

    def begin(self, process: int, f: str, value: Any, *, final: bool = False) -> int:
        """The index of the invocation."""
        self._open[process] = f, value, final
        return self._add("invoke", process, f, value, None, final=final)

    def end(self, process: int, value: Any = None, type_: EventType = "ok") -> int:
        """The index of the completion."""
        f, asked, final = self._open.pop(process)
        error = None if type_ == "ok" else "as told"
        return self._add(type_, process, f, asked if value is None else value, error, final=final)

    def do(self, process: int, f: str, value: Any, type_: EventType = "ok", *, final: bool = False) -> int:
        """An operation that begins and ends before the next event."""
        self.begin(process, f, _asked(value), final=final)
        return self.end(process, value, type_)

    def send(self, process: int, key: str, offset: int | None, value: int, type_: EventType = "ok") -> int:
        return self.do(process, "send", [sent(key, offset, value)], type_)

    def poll(self, process: int, polled: Mapping[str, list[list[int]]], *, final: bool = False) -> int:
        return self.do(process, "poll", [["poll", dict(polled)]], final=final)

    def history(self) -> History:
        return History(self.header, self.operations)

    def _add(self, type_: EventType, process: int, f: str, value: Any, error: str | None, *, final: bool) -> int:
        index = len(self.operations)
        self.operations.append(Operation(index, type_, process, index * 1_000_000, f, value, error, final))
        return index


def sent(key: str, offset: int | None, value: int) -> list[Any]:
    return ["send", key, value if offset is None else [offset, value]]


def found(checked: Checked, *, allowed: bool | None = None) -> dict[str, Finding]:
    """By type, the first."""
    return {
        finding.type: finding for finding in reversed(checked.findings) if allowed is None or finding.allowed == allowed
    }


def _asked(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [
        ["poll"] if one[0] == "poll" else ["send", one[1], one[2][1] if isinstance(one[2], list) else one[2]]
        for one in value
        if isinstance(one, list)
    ] or value


@dataclass(slots=True)
class _Record:
    # None for the marker that ends a transaction.
    value: int | None
    transaction: int | None


@dataclass(slots=True)
class _Work:
    """What a process is doing: what it still has to do, and what it has done."""

    f: str
    todo: list[list[Any]]
    done: list[list[Any]]
    transaction: int | None
    before: dict[str, int]


@dataclass(slots=True)
class _Member:
    process: int
    is_subscribed: bool
    positions: dict[str, int] = field(default_factory=dict)
    work: _Work | None = None


class QueueModel:
    """Partitions with transactions, markers that arrive late, producers whose outcomes get lost, consumers that lag,
    and groups that rebalance. `bug` breaks one rule."""

    def __init__(self, random: Random, *, clients: int = 5, keys: int = 3, bug: str | None = None) -> None:
        self._random = random
        self._bug = bug
        self._keys = [f"t-{number}" for number in range(keys)]
        self._logs: dict[str, list[_Record]] = {key: [] for key in self._keys}
        self._decided: dict[int, bool] = {}
        self._markers: list[tuple[str, int]] = []
        self._committed_offsets = dict.fromkeys(self._keys, 0)
        self._next_value = dict.fromkeys(self._keys, 0)
        self._next_transaction = 0
        self._clients = [_Member(process, process % 2 == 1) for process in range(clients)]
        self._next_process = clients
        self.told = Told(Header(workload="queue", transactions=True))

    def run(self, steps: int) -> History:
        for _ in range(steps):
            if self._markers and self._random.random() < 0.3:
                self._write_marker(self._random.randrange(len(self._markers)))
            elif self._random.random() < 0.08:
                self._rebalance()
            else:
                self._step(self._random.choice(self._clients))
        self._heal()
        return self.told.history()

    def _step(self, client: _Member) -> None:
        if client.work is None:
            self._begin(client)
        elif client.work.todo:
            self._carry_out(client, client.work.todo.pop(0))
        else:
            self._complete(client)

    def _begin(self, client: _Member) -> None:
        if not client.positions:
            f = "subscribe" if client.is_subscribed else "assign"
            self.told.do(client.process, f, ["t"] if client.is_subscribed else list(self._keys))
            client.positions = dict.fromkeys(self._keys, 0)
            if client.is_subscribed:
                self._rebalance()
            return
        f = self._random.choice(["send", "poll", "txn", "txn"])
        kinds = [f] if f != "txn" else self._random.choices(["send", "poll"], k=self._random.randint(1, 4))
        asked = [["poll"] if kind == "poll" else self._new_send() for kind in kinds]
        transaction = None
        if f == "txn":
            transaction = self._next_transaction
            self._next_transaction += 1
        self.told.begin(client.process, f, asked)
        client.work = _Work(f, [*asked], [], transaction, dict(client.positions))

    def _new_send(self) -> list[Any]:
        key = self._random.choice(self._keys)
        self._next_value[key] += 1
        return ["send", key, self._next_value[key]]

    def _carry_out(self, client: _Member, asked: list[Any]) -> None:
        assert client.work is not None
        if asked[0] == "poll":
            client.work.done.append(["poll", self._poll(client)])
            return
        _, key, value = asked
        log = self._logs[key]
        log.append(_Record(value, client.work.transaction))
        client.work.done.append(["send", key, [len(log) - 1, value]])
        if self._bug == "duplicate" and self._random.random() < 0.2:
            log.append(_Record(value, client.work.transaction))

    def _poll(self, client: _Member) -> dict[str, list[list[int]]]:
        polled = {}
        for key in self._random.sample(self._keys, len(self._keys)):
            if client.is_subscribed and key not in client.positions:
                continue
            log = self._logs[key]
            records: list[list[int]] = []
            for offset in range(client.positions.get(key, 0), self._last_stable_offset(key)):
                if len(records) == 4 or self._random.random() < 0.1:
                    break
                record = log[offset]
                client.positions[key] = offset + 1
                if record.value is not None and self._is_visible(record):
                    records.append([offset, record.value])
            if records:
                polled[key] = records
        return polled

    def _last_stable_offset(self, key: str) -> int:
        ended = {record.transaction for record in self._logs[key] if record.value is None}
        for offset, record in enumerate(self._logs[key]):
            if record.transaction is not None and record.transaction not in ended and self._bug != "uncommitted":
                return offset
        return len(self._logs[key])

    def _is_visible(self, record: _Record) -> bool:
        if record.value is not None and record.transaction is None:
            return self._bug != "lost" or record.value % 8 != 7
        assert record.transaction is not None
        return self._decided.get(record.transaction, self._bug == "uncommitted") or self._bug == "aborted"

    def _complete(self, client: _Member) -> None:
        assert client.work is not None
        work, client.work = client.work, None
        luck = self._random.random()
        commits = self._random.random() < 0.8
        if work.transaction is not None:
            self._decide(work, commits=commits)
            if luck < 0.1:
                self._lose(client)
                return
            if not commits:
                client.positions = work.before
                self.told.end(client.process, type_="fail")
                return
        elif luck < 0.05:
            self._lose(client)
            return
        if client.is_subscribed and self._random.random() < 0.5:
            for key, position in client.positions.items():
                self._committed_offsets[key] = position
        self.told.end(client.process, work.done)

    def _decide(self, work: _Work, *, commits: bool) -> None:
        assert work.transaction is not None
        self._decided[work.transaction] = commits
        self._markers += [(key, work.transaction) for key in sorted({one[1] for one in work.done if one[0] == "send"})]

    def _write_marker(self, number: int) -> None:
        key, transaction = self._markers.pop(number)
        self._logs[key].append(_Record(None, transaction))

    def _lose(self, client: _Member) -> None:
        """What became of its operation is unknown to the client, which another takes the place of."""
        if self._random.random() < 0.7:
            self.told.end(client.process, type_="info")
        client.process = self._next_process
        self._next_process += 1
        client.positions = {}
        client.work = None

    def _rebalance(self) -> None:
        members = [client for client in self._clients if client.is_subscribed and client.positions and not client.work]
        if not members or any(client.is_subscribed and client.work for client in self._clients):
            return
        for member in members:
            member.positions = {"": 0}
        for key in self._keys:
            self._random.choice(members).positions[key] = self._committed_offsets[key]

    def _heal(self) -> None:
        for client in self._clients:
            if client.work is not None and client.work.transaction is not None:
                self._decide(client.work, commits=False)
        while self._markers:
            self._write_marker(0)
        reader = _Member(self._next_process, is_subscribed=False, positions=dict.fromkeys(self._keys, 0))
        self.told.do(reader.process, "assign", list(self._keys), final=True)
        while any(reader.positions[key] < len(self._logs[key]) for key in self._keys):
            self.told.poll(reader.process, self._poll(reader), final=True)
