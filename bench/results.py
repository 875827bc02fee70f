"""What a run found, as a value that can be written, read again and drawn."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from msgspec import Struct, to_builtins

FORMAT: Final = 1


class Observation(Struct, frozen=True, kw_only=True):
    """One cell measured once."""

    cell: str
    target: str
    round: int
    values: Mapping[str, float | None]
    error: str | None = None
    """Why there are no values."""


class Spread(Struct, frozen=True, kw_only=True):
    """The observations of one value over the rounds."""

    median: float
    least: float
    most: float


class Results(Struct, frozen=True, kw_only=True):
    """Everything needed to judge a run and draw it again."""

    started: str
    """UTC, ISO 8601."""
    seconds: float
    is_quick: bool
    rounds: int
    machine: Mapping[str, str]
    targets: Mapping[str, Mapping[str, Any]]
    """By name: version, bootstrap address and what its nodes were started with. The first is held to the others."""
    cells: Mapping[str, str]
    """Title by name, in the order of measuring."""
    observations: Sequence[Observation]
    warm_rounds: int = 0
    """Before the others, on nodes that run on; they do not count."""

    def spread(self, cell: str, target: str, measure: str) -> Spread | None:
        """None when it was never observed."""
        found = self.series(cell, target, measure)
        return Spread(median=statistics.median(found), least=min(found), most=max(found)) if found else None

    def series(self, cell: str, target: str, measure: str) -> list[float]:
        """The values of all rounds in order."""
        observed = (item for item in self.observations if item.cell == cell and item.target == target)
        return [value for item in observed if (value := item.values.get(measure)) is not None]

    def ratio(self, cell: str, measure: str) -> float | None:
        """Of the medians, first target to second; None unless both were observed and the second is not zero."""
        if len(self.targets) < 2:
            return None
        first, second = (self.spread(cell, target, measure) for target in list(self.targets)[:2])
        return first.median / second.median if first and second and second.median else None

    @property
    def errors(self) -> list[Observation]:
        return [item for item in self.observations if item.error is not None]

    def to_json(self) -> str:
        """A text that `from_json` reads."""
        return json.dumps({"format": FORMAT, **to_builtins(self)}, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` gave. Raises ValueError with a sentence when it is something else."""
        try:
            data = json.loads(text)
            if data.pop("format") != FORMAT:
                raise ValueError("another format")
            observations = tuple(Observation(**item) for item in data.pop("observations"))
            return cls(**data, observations=observations)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"these are not results of this program: {error}") from error
