"""What nodes and clients log, as lines of a run's trace."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from .process import current_process


class TraceLog(logging.Handler):
    """`active_controller` is the newest of which any voter logged that it leads the quorum."""

    def __init__(self, trace: Callable[[str], None]) -> None:
        super().__init__()
        self.active_controller: int | None = None
        self.directory_losers: set[str] = set()
        """Names of processes that logged that a log directory is offline."""
        self.uncut: list[str] = []
        """What processes logged of replicas whose log parts from the leader's, and which did not cut it."""
        self._epoch = -1
        self._write = trace

    def emit(self, record: logging.LogRecord) -> None:
        process = current_process()
        if process is None or not process.is_dead:
            self._note_leader(record)
            if process is not None and record.msg.startswith("Stopping serving logs in dir: "):
                self.directory_losers.add(process.name)
            text = without_addresses(record.getMessage())
            if record.msg.startswith("Error for partition: ") and "cannot be cut" in text:
                self.uncut.append(f"{process}: {text}")
            self._write(f"log {process} {record.levelname} {text}")
            if record.exc_info and record.exc_info[1] is not None:
                self._write(f"log {process} {type(record.exc_info[1]).__name__}: {record.exc_info[1]}")

    def _note_leader(self, record: logging.LogRecord) -> None:
        match record.args:
            case (int() as leader_id, int() as epoch) if record.msg.startswith("In the new epoch, the leader is: "):
                if epoch >= self._epoch:
                    self.active_controller, self._epoch = leader_id, epoch


def without_addresses(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+", "0x…", text)
