"""Counters that share nothing: each client adds to one of its own, and reads those of all; a client program.

`add` {"k", "n"} is a record of an idempotent producer; `read` {"k"} → {"k", "n"} the sum of the records up to the end
that the partition had when the read began. What was acknowledged counts once, whatever was retried.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import click

from ..histories.client_history import ClientHistory
from .client_program import Instructions, ProgramOptions, program_options, run_client
from .session import Received, Send
from .view_client import ViewClient

_MAX_ADDED: Final = 100


class CounterClient(ViewClient):
    """Its counter is the partition with its number."""

    answer_field = "n"

    def __init__(self, options: ProgramOptions, history: ClientHistory, instructions: Instructions) -> None:
        super().__init__(options, history, instructions)
        self._sums: Counter[str] = Counter()

    def subjects(self) -> list[str]:
        return self.options.keys

    def partition_of(self, subject: str) -> str:
        return subject

    def draw_write(self) -> tuple[str, Any, Send]:
        keys = self.options.keys
        key, added = keys[self.options.process % len(keys)], self.random.randint(1, _MAX_ADDED)
        return "add", {"k": key, "n": added}, Send(key, str(added).encode())

    def take(self, key: str, record: Received) -> None:
        self._sums[key] += int(record.value or 0)

    def forget(self, key: str) -> None:
        self._sums.pop(key, None)

    def answer(self, subject: str) -> int:
        return self._sums[subject]


@click.command()
@program_options
def main(**given: Any) -> None:
    """Add to a counter, read all of them."""
    run_client(ProgramOptions(**given), CounterClient)


if __name__ == "__main__":
    main()
