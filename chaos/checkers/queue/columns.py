"""What a history of the queue workload says, as columns: one array for each field, numbers for keys, values and
processes.

Operations are numbered in the order of their last event. A value of a key has one number throughout, so that all that
is known of it (its writer, its offset, its first reader) lies in arrays: 10 million operations fit into a few
gigabytes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Container, Mapping, Sequence
from typing import Any, Final

from ...histories.operation import NEMESIS, History, Operation

OK: Final = 0
FAIL: Final = 1
INFO: Final = 2
_OUTCOMES: Final = {"ok": OK, "fail": FAIL, "info": INFO}

SEND: Final = 0
POLL: Final = 1
TXN: Final = 2
ASSIGN: Final = 3
SUBSCRIBE: Final = 4
_FUNCTIONS: Final = {"send": SEND, "poll": POLL, "txn": TXN, "assign": ASSIGN, "subscribe": SUBSCRIBE}

NONE: Final = -1


class QueueColumns:
    """All operations of a history; `operation` and `value` are numbers of these, NONE stands for "not known"."""

    def __init__(self, *, has_transactions: bool = False, known_there: Container[int] = ()) -> None:
        self.has_transactions = has_transactions
        # Operations of unknown outcome, by event, of which what is not among these columns proves that they took place.
        self._known_there = known_there
        self.keys: list[str] = []
        # By key: value -> its number.
        self.numbers: list[dict[Any, int]] = []

        # By operation. `event` is the index that names it; `invoked` and `completed` are indices of events as well, and
        # what never completed has NONE.
        self.event = array("q")
        self.invoked = array("q")
        self.completed = array("q")
        self.invoked_ns = array("q")
        self.completed_ns = array("q")
        self.process = array("q")
        self.outcome = bytearray()
        self.function = bytearray()
        self.is_final = bytearray()
        # Where its sends and reads begin; those of the next operation begin where they end.
        self.first_send = array("q")
        self.first_read = array("q")

        # By send: its value and the offset in its acknowledgement.
        self.send_value = array("q")
        self.send_offset = array("q")
        # By read: its value, its offset, and whether a poll begins with it.
        self.read_value = array("q")
        self.read_offset = array("q")
        self.begins_poll = bytearray()

        # By value: what it is, its key, the operation that sends it, the first that read it and was `ok`, and an offset
        # at which it lies.
        self.values: list[Any] = []
        self.key_of = array("i")
        self.writer = array("q")
        self.reader = array("q")
        self.offset_of = array("q")
        # Values that lie at several offsets.
        self.more_offsets: dict[int, set[int]] = {}

        # Why outcomes are unknown.
        self.causes: dict[str, int] = {}
        self._key_numbers: dict[str, int] = {}
        self._processes: dict[int | str, int] = {}
        self.process_names: list[int | str] = []

    def __len__(self) -> int:
        return len(self.event)

    def sends(self, operation: int) -> range:
        """The sends of an operation, by number."""
        return range(self.first_send[operation], self.first_send[operation + 1])

    def reads(self, operation: int) -> range:
        return range(self.first_read[operation], self.first_read[operation + 1])

    def operation_of_read(self, read: int) -> int:
        return bisect_right(self.first_read, read) - 1

    def is_there(self, value: int) -> bool:
        """Whether what was sent is provably in its log: the send was acknowledged, a poll returned it, or something
        else of its transaction. A send that is no transaction may have taken place in part: each value stands for
        itself."""
        writer = self.writer[value]
        if writer == NONE or self.outcome[writer] != INFO:
            return writer != NONE and self.outcome[writer] == OK
        if self.reader[value] != NONE:
            return True
        if self.is_atomic(writer):
            return self.event[writer] in self._known_there or any(
                self.reader[self.send_value[send]] != NONE for send in self.sends(writer)
            )
        return any(self.send_value[send] == value and self.send_offset[send] != NONE for send in self.sends(writer))

    def is_atomic(self, operation: int) -> bool:
        return self.has_transactions or self.function[operation] == TXN

    def key_number(self, key: str) -> int:
        number = self._key_numbers.get(key)
        if number is None:
            number = self._key_numbers[key] = len(self.keys)
            self.keys.append(key)
            self.numbers.append({})
        return number

    def process_number(self, process: int | str) -> int:
        number = self._processes.get(process)
        if number is None:
            number = self._processes[process] = len(self.process_names)
            self.process_names.append(process)
        return number

    def value_number(self, key: int, value: Any) -> int:
        """The number of `value` in `key`, a new one for a new value."""
        numbers = self.numbers[key]
        if isinstance(value, list):
            value = _hashable(value)
        number = numbers.get(value)
        if number is None:
            number = numbers[value] = len(self.key_of)
            self.values.append(value)
            self.key_of.append(key)
            self.writer.append(NONE)
            self.reader.append(NONE)
            self.offset_of.append(NONE)
        return number

    def note_offset(self, value: int, offset: int) -> None:
        known = self.offset_of[value]
        if known == NONE:
            self.offset_of[value] = offset
        elif known != offset:
            self.more_offsets.setdefault(value, {known}).add(offset)

    def add(self, invocation: Operation, completion: Operation | None) -> None:
        """Take in one operation of a client; those of no interest are left out."""
        function = _FUNCTIONS.get(invocation.f)
        if function is None:
            return
        last = completion or invocation
        outcome = INFO if completion is None else _OUTCOMES[completion.type]
        self.event.append(last.index)
        self.invoked.append(invocation.index)
        self.completed.append(NONE if completion is None else completion.index)
        self.invoked_ns.append(invocation.time)
        self.completed_ns.append(last.time)
        self.process.append(self.process_number(invocation.process))
        self.outcome.append(outcome)
        self.function.append(function)
        self.is_final.append(invocation.final or last.final)
        self.first_send.append(len(self.send_value))
        self.first_read.append(len(self.read_value))
        value = invocation.value if completion is None or completion.value is None else completion.value
        if function >= ASSIGN:
            return
        if outcome == INFO:
            cause = (last.error or "no answer") if completion else "no completion"
            if cause in self.causes or len(self.causes) < 32:
                self.causes[cause] = self.causes.get(cause, 0) + 1
        number = len(self.event) - 1
        for micro in value or ():
            if micro[0] == "send":
                self._send(number, micro[1], micro[2])
            elif len(micro) > 1 and micro[1]:
                self._poll(number, outcome, micro[1])

    def _send(self, operation: int, key: str, sent: Any) -> None:
        offset: int | None = None
        if isinstance(sent, list) and len(sent) == 2:
            offset, sent = sent
        value = self.value_number(self.key_number(key), sent)
        if self.writer[value] == NONE:
            self.writer[value] = operation
        self.send_value.append(value)
        self.send_offset.append(NONE if offset is None else offset)

    def _poll(self, operation: int, outcome: int, records: Mapping[str, Sequence[Any]]) -> None:
        values, offsets, begins = self.read_value, self.read_offset, self.begins_poll
        offset_of, reader = self.offset_of, self.reader
        is_first = 1
        for name, pairs in records.items():
            key = self.key_number(name)
            numbers = self.numbers[key]
            for offset, read in pairs:
                try:
                    value = numbers.get(read, NONE)
                except TypeError:
                    value = NONE
                if value == NONE:
                    value = self.value_number(key, read)
                values.append(value)
                begins.append(is_first)
                is_first = 0
                if outcome == OK and reader[value] == NONE:
                    reader[value] = operation
                if offset is None:
                    offsets.append(NONE)
                    continue
                offsets.append(offset)
                if offset_of[value] != offset:
                    self.note_offset(value, offset)

    def finish(self) -> None:
        """Call it once all are added. Offsets of sends count where the send is provably there."""
        self.first_send.append(len(self.send_value))
        self.first_read.append(len(self.read_value))
        for value, offset in zip(self.send_value, self.send_offset, strict=True):
            if offset != NONE and self.offset_of[value] != offset and self.is_there(value):
                self.note_offset(value, offset)


def columns(history: History) -> QueueColumns:
    """All operations of `history`, read once from its first event to its last."""
    result = QueueColumns(has_transactions=history.header.transactions)
    pending: dict[int | str, Operation] = {}
    for operation in history.operations:
        if operation.process == NEMESIS:
            continue
        if operation.type == "invoke":
            if (unanswered := pending.get(operation.process)) is not None:
                # No process should go on so, and judge says that it did; what it asked for may have happened.
                result.add(unanswered, None)
            pending[operation.process] = operation
        elif (invocation := pending.pop(operation.process, None)) is not None:
            result.add(invocation, operation)
    for invocation in pending.values():
        result.add(invocation, None)
    result.finish()
    return result


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value
