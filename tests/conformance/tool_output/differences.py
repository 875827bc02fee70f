"""Lines of answers that differ from Apache Kafka's and are meant to, each with its reason: rules only."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

FILE: Final = Path(__file__).with_name("known_differences.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Some lines of the answers to some command lines of one transcript."""

    transcript: str
    why: str
    """What of `docs/divergences.md`, or what else, explains it."""
    command: str
    """A regular expression of whole command lines, as the ones below are of whole lines of an answer."""
    apache_kafka: tuple[str, ...] = ()
    """Lines that only Apache Kafka prints."""
    penstock: tuple[str, ...] = ()
    """Lines that only Penstock prints."""

    @classmethod
    def parse(cls, entry: dict[str, Any]) -> Self:
        return cls(
            transcript=entry["transcript"],
            why=entry["why"],
            command=entry["command"],
            apache_kafka=tuple(entry.get("apache_kafka", ())),
            penstock=tuple(entry.get("penstock", ())),
        )


def read_differences(file: Path = FILE) -> tuple[Difference, ...]:
    """All that are known."""
    return tuple(map(Difference.parse, tomllib.loads(file.read_text()).get("difference", [])))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """An answer beside the one of Apache Kafka."""

    unexplained: tuple[str, ...] = ()
    """Lines with `-` (only Apache Kafka's) or `+` in front."""
    explained_by: frozenset[Difference] = frozenset()


def compare(command: str, expected: Sequence[str], found: Sequence[str], known: Sequence[Difference]) -> Comparison:
    """The lines that differ, in the order of the answers."""
    applicable = [difference for difference in known if re.fullmatch(difference.command, command)]
    unexplained: list[str] = []
    explained_by: set[Difference] = set()
    for line in difflib.ndiff(list(expected), list(found), linejunk=None, charjunk=None):
        mark, text = line[0], line[2:]
        if mark not in "-+":
            continue
        used = {
            difference
            for difference in applicable
            if any(
                re.fullmatch(pattern, text)
                for pattern in (difference.apache_kafka if mark == "-" else difference.penstock)
            )
        }
        explained_by |= used
        if not used:
            unexplained.append(f"{mark}{text}")
    return Comparison(unexplained=tuple(unexplained), explained_by=frozenset(explained_by))
