"""Lists that transactions append to and read, as Elle's list-append: a partition is a list; a client program.

An append is a send in a transaction. A read is that of the partition from its start to its last stable offset, by a
read_committed consumer. Kafka's transactions are writes: reads are no part of them. So

- what a read shows is committed (no G1a), in one order for all (no incompatible order), and once; it may end inside a
  committed transaction, where another that is still open holds the last stable offset (G1b);
- transactions may write several keys in different orders (G0), and a reader may see what one of them did to one key
  and not to another (G-single, G2): the markers of a commit arrive one by one;
- a commit behind another transaction that is still open is not shown yet, to who made it neither: no realtime or
  process order.

Reads come before appends, so a transaction never misses what it wrote itself.
"""

from __future__ import annotations

from typing import Any, Final

import click

from ...client import clock
from .client_program import Client, ProgramOptions, program_options, run_client
from .final_reads import CATCH_UP_S, find_ends
from .outcomes import NotDoneError, UnknownOutcomeError
from .session import Received, Send, SessionOptions

_MAX_OPERATIONS: Final = 4
_APPEND_RATIO: Final = 0.5
_ABORT_RATIO: Final = 0.1
_CRASH_RATIO: Final = 0.005
# Keys are worked on by all clients at the same time, some of them for so long, then the next: lists stay short.
_KEYS_AT_A_TIME: Final = 4
_WINDOW_S: Final = 5.0
_POLL_S: Final = 0.2
_READ_S: Final = 10.0


class ListAppendClient(Client):
    def session_options(self) -> SessionOptions:
        name = f"{self.options.topic}-{self.options.process}"
        return SessionOptions(bootstrap=self.options.bootstrap, client_id=name, transactional_id=name)

    def began(self) -> None:
        """Each read assigns what it reads."""

    def step(self) -> None:
        if self.random.random() < _CRASH_RATIO:
            self.crash()
            return
        keys = self._current_keys()
        asked: list[list[Any]] = []
        for _ in range(self.random.randint(1, _MAX_OPERATIONS)):
            key = self.random.choice(keys)
            if self.random.random() < _APPEND_RATIO:
                asked.append(["append", key, self.draw_value()])
            else:
                asked.append(["r", key, None])
        asked.sort(key=lambda operation: operation[0] == "append")
        self.perform("txn", asked, lambda: self._transact(asked))

    def final(self) -> bool:
        deadline_s = clock.monotonic_s() + CATCH_UP_S
        self.close()
        ends = find_ends(self.options.bootstrap, self.options.keys, deadline_s=deadline_s)
        if ends is None:
            return False
        options = SessionOptions(
            bootstrap=self.options.bootstrap, client_id=f"{self.options.topic}-final", has_producer=False
        )
        left = list(ends)
        while left and clock.monotonic_s() < deadline_s:
            if not self.has_session:
                self.open(options, is_wanted=lambda: clock.monotonic_s() < deadline_s)
            elif self._read_whole(left[0], ends[left[0]]):
                del left[0]
        return not left

    def _current_keys(self) -> list[str]:
        keys = self.options.keys
        elapsed_s = clock.monotonic_s() - self.options.start_ns / 1e9
        first = int(elapsed_s / _WINDOW_S) * _KEYS_AT_A_TIME
        return [keys[(first + number) % len(keys)] for number in range(min(_KEYS_AT_A_TIME, len(keys)))]

    def _read_whole(self, key: str, end: int) -> bool:
        """One final read; whether it came to `end`, which an open transaction may hold back."""
        asked = [["r", key, None]]
        self.perform("txn", asked, lambda: [["r", key, self._read(key)]], final=True)
        return self.has_session and self.session.reached(key) >= end

    def _transact(self, asked: list[list[Any]]) -> list[list[Any]]:
        done: list[list[Any]] = []
        is_open = False
        try:
            for operation in asked:
                kind, key, value = operation
                if kind == "r":
                    done.append(["r", key, self._read(key)])
                    continue
                if not is_open:
                    self.session.begin()
                    is_open = True
                self.session.send([Send(key, str(value).encode())])
                done.append(operation)
            if is_open and self.random.random() < _ABORT_RATIO:
                raise NotDoneError("aborted by the client")
        except (NotDoneError, UnknownOutcomeError) as error:
            # Nothing has asked for it to be committed: whatever the abort comes to, it has no effect.
            if isinstance(error, NotDoneError) and error.is_broken:
                raise
            if is_open:
                self.session.abort()
            raise NotDoneError(str(error)) from error
        if is_open:
            self.session.commit()
        return done

    def _read(self, key: str) -> list[int]:
        """From the start to the last stable offset. Raises NotDoneError."""
        end = self.session.end(key)
        read: list[Received] = []
        if end:
            self.session.assign([key], from_beginning=True)
        deadline_s = clock.monotonic_s() + _READ_S
        while self.session.reached(key) < end:
            if clock.monotonic_s() >= deadline_s:
                raise NotDoneError(f"{key} was read to {self.session.reached(key)} of {end} in {_READ_S:g} s")
            # What came to be stable since then may be cut off anywhere, in the middle of a transaction.
            read += [one for one in self.session.poll(_POLL_S).get(key, ()) if one.offset < end]
        return [int(one.value or 0) for one in read]


@click.command()
@program_options
def main(**given: Any) -> None:
    """Append to lists in transactions, read them."""
    run_client(ProgramOptions(**given), ListAppendClient)


if __name__ == "__main__":
    main()
