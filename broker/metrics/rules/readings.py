"""What all readers have in common. A reader yields what it reads, and None where others may have their turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from .metric import Reading

Readings: TypeAlias = Iterator[Reading | None]
Reader: TypeAlias = Callable[[], Readings]

WALKED_PER_TURN: Final = 250
"""Partitions, groups or topics looked at in one turn of the event loop: less than a millisecond."""
