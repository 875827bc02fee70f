"""Registers in a compacted topic: each record key is one, its value the last record of that key; a client program.

`write` {"k", "v"}; `read` {"k"} → {"k", "v"} after the reader has come to the end that the partition had when the read
began, v null where there is no record. In the end everything is read anew, from what compaction left.
"""

from __future__ import annotations

from typing import Any, Final

import click

from ..histories.client_history import ClientHistory
from .client_program import Instructions, ProgramOptions, program_options, run_client
from .session import Received, Send
from .view_client import ViewClient

# So that values are overwritten often, and compaction has what it can leave out.
_REGISTERS: Final = 12


class RegisterClient(ViewClient):
    answer_field = "v"

    def __init__(self, options: ProgramOptions, history: ClientHistory, instructions: Instructions) -> None:
        super().__init__(options, history, instructions)
        self._values: dict[str, dict[str, int]] = {}

    def subjects(self) -> list[str]:
        return [f"r{number}" for number in range(_REGISTERS)]

    def partition_of(self, subject: str) -> str:
        keys = self.options.keys
        return keys[int(subject[1:]) % len(keys)]

    def draw_write(self) -> tuple[str, Any, Send]:
        register, value = self.random.choice(self.subjects()), self.draw_value()
        send = Send(self.partition_of(register), str(value).encode(), register.encode())
        return "write", {"k": register, "v": value}, send

    def take(self, key: str, record: Received) -> None:
        if record.record_key is not None and record.value is not None:
            self._values.setdefault(key, {})[record.record_key.decode()] = int(record.value)

    def forget(self, key: str) -> None:
        self._values.pop(key, None)

    def answer(self, subject: str) -> int | None:
        return self._values.get(self.partition_of(subject), {}).get(subject)


@click.command()
@program_options
def main(**given: Any) -> None:
    """Write registers, read them back."""
    run_client(ProgramOptions(**given), RegisterClient)


if __name__ == "__main__":
    main()
