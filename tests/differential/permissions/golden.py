"""What Apache Kafka 4.3.1 answered in every cell of the matrix, kept so that the comparison needs no Java."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

from differential.permissions.matrix import Row

Rows = dict[str, Row]
"""By question."""


def read_golden(file: Path) -> Rows:
    rows: Rows = json.loads(lzma.decompress(file.read_bytes()))
    return rows


def write_golden(rows: Rows, file: Path) -> None:
    """The same rows give the same bytes."""
    text = json.dumps(rows, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    file.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def as_text(rows: Rows) -> str:
    """For people: by question and resource each outcome with the states of ACLs that lead to it."""
    lines: list[str] = []
    for question, row in rows.items():
        lines.append(question)
        for resource, outcomes in row.items():
            states: dict[str, list[str]] = {}
            for state, outcome in outcomes.items():
                states.setdefault(outcome, []).append(state)
            for outcome, some in states.items():
                lines.append(f"  {resource}: {' | '.join(some) if len(states) > 1 else 'any state'}")
                lines.append(f"      {outcome}")
    return "\n".join(lines) + "\n"
