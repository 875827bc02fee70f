"""What a check of logs has found: sentences with file and position, and how much was looked at."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_FINDINGS_OF_FILE_MAX: Final = 20
"""An index of the wrong segment has a million wrong entries, and the first of them say it."""


class Finding(NamedTuple):
    path: str
    position: int | None
    """In bytes; None where the file as a whole is meant."""
    sentence: str

    def __str__(self) -> str:
        return f"{self.path}{'' if self.position is None else f' at {self.position}'}: {self.sentence}"


@dataclass(slots=True)
class Totals:
    folders: int = 0
    segments: int = 0
    bytes: int = 0
    batches: int = 0
    records: int = 0
    aborted_transactions: int = 0
    open_transactions: int = 0
    missing_offsets: int = 0
    """Between the first and the last: compaction takes them, and so does damage."""
    index_entries: int = 0

    def add(self, other: "Totals") -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(slots=True)
class Report:
    findings: list[Finding] = field(default_factory=list)
    """What is wrong. A node would notice some of it, and repair some of that by itself."""
    notes: list[Finding] = field(default_factory=list)
    """What is as a node may leave it when it was killed, or while it runs."""
    totals: Totals = field(default_factory=Totals)
    suppressed: Counter[str] = field(default_factory=Counter)
    """By file: findings beyond the first twenty."""
    _found: Counter[str] = field(default_factory=Counter)

    def find(self, path: str, sentence: str, position: int | None = None) -> None:
        self._found[path] += 1
        if self._found[path] > _FINDINGS_OF_FILE_MAX:
            self.suppressed[path] += 1
        else:
            self.findings.append(Finding(path, position, sentence))

    def note(self, path: str, sentence: str, position: int | None = None) -> None:
        self.notes.append(Finding(path, position, sentence))

    def take(self, other: "Report") -> None:
        self.findings += other.findings
        self.notes += other.notes
        self.suppressed += other.suppressed
        self.totals.add(other.totals)
