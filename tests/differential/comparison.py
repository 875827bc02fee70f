"""Where two transcripts differ, and which of the differences are known."""

from __future__ import annotations

import fnmatch
import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KNOWN = Path(__file__).with_name("known_differences.toml")
DIVERGENCES = Path(__file__).parents[2] / "docs" / "divergences.md"
_SHOWN = 300
_NAMES = (
    "topic_name",
    "resource_name",
    "name",
    "topic",
    "topic_id",
    "partition_index",
    "partition",
    "index",
    "api_key",
    "key",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One place where the answers differ; `kafka` and `penstock` are JSON, or `absent`."""

    path: str
    kafka: str
    penstock: str

    def __str__(self) -> str:
        return f"{self.path}: {self.kafka[:_SHOWN]} / {self.penstock[:_SHOWN]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDifference:
    """A pattern of differences with its reason.

    `divergence` begins a row of docs/divergences.md; it is empty when no client can tell the difference. The other
    fields are patterns with `*`, but for the reason.
    """

    path: str
    kafka: str
    penstock: str
    divergence: str
    reason: str

    def matches(self, difference: Difference) -> bool:
        return (
            _like(difference.path, self.path)
            and _like(difference.kafka, self.kafka)
            and _like(difference.penstock, self.penstock)
        )


def known_differences(file: Path = KNOWN) -> tuple[KnownDifference, ...]:
    """One for each path of each entry, so that a path that explains nothing is found beside others that do."""
    return tuple(
        KnownDifference(
            path=path,
            kafka=entry.get("kafka", "*"),
            penstock=entry.get("penstock", "*"),
            divergence=entry["divergence"],
            reason=entry["reason"],
        )
        for entry in tomllib.loads(file.read_text())["difference"]
        for path in ([entry["path"]] if isinstance(entry["path"], str) else entry["path"])
    )


def differences(kafka: Any, penstock: Any, path: str) -> Iterator[Difference]:
    """Every place below `path` where the two differ, deepest first."""
    if isinstance(kafka, dict) and isinstance(penstock, dict):
        for name in [*kafka, *(name for name in penstock if name not in kafka)]:
            yield from _compared(kafka, penstock, name, f"{path}.{name}" if path else str(name))
    elif isinstance(kafka, list) and isinstance(penstock, list):
        ours, theirs = _by_label(penstock), _by_label(kafka)
        for label in [*theirs, *(label for label in ours if label not in theirs)]:
            yield from _compared(theirs, ours, label, f"{path}[{label}]")
    elif kafka != penstock or type(kafka) is not type(penstock):
        yield Difference(path=path, kafka=json.dumps(kafka), penstock=json.dumps(penstock))


def unexplained(found: Sequence[Difference], known: Sequence[KnownDifference]) -> list[Difference]:
    return [one for one in found if not any(pattern.matches(one) for pattern in known)]


def stale(found: Sequence[Difference], known: Sequence[KnownDifference]) -> list[KnownDifference]:
    """Patterns that explain nothing any more, those included whose every match another pattern before them has."""
    used = {next((pattern for pattern in known if pattern.matches(one)), None) for one in found}
    return [pattern for pattern in known if pattern not in used]


def listed() -> set[str]:
    """How the rows of docs/divergences.md begin."""
    return set(re.findall(r"^\| ([^|]+?) \|", DIVERGENCES.read_text(), re.MULTILINE))


def _compared(kafka: dict[Any, Any], penstock: dict[Any, Any], name: Any, path: str) -> Iterator[Difference]:
    if name not in penstock:
        yield Difference(path=path, kafka=json.dumps(kafka[name]), penstock="absent")
    elif name not in kafka:
        yield Difference(path=path, kafka="absent", penstock=json.dumps(penstock[name]))
    else:
        yield from differences(kafka[name], penstock[name], path)


def _by_label(items: list[Any]) -> dict[str, Any]:
    """Items by what they are called, where they are called differently; else by their place."""
    labels = [_label(item, place) for place, item in enumerate(items)]
    if len(set(labels)) < len(labels):
        labels = [str(place) for place in range(len(items))]
    return dict(zip(labels, items, strict=True))


def _label(item: Any, place: int) -> str:
    if isinstance(item, dict):
        for name in _NAMES:
            if item.get(name) is not None:
                return str(item[name])
    return str(place)


def _like(text: str, pattern: str) -> bool:
    # Brackets stand for themselves: paths are full of them.
    return fnmatch.fnmatchcase(text, pattern.replace("[", "[[]"))
