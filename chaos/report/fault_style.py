"""How kinds of faults are told apart by colour: by what they are done to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .fault_band import FaultBand

# By the beginning of a kind's name; the names are in `faults/kinds.py`.
_STYLES: Final = {
    "links": ("partition", "slow-link", "bandwidth", "connection", "isolate"),
    "processes": ("kill", "pause", "stop", "restart", "rolling"),
    "clocks": ("clock",),
    "disks": ("disk", "slow-disk", "failed-read", "no-descriptors", "bit-flip", "truncation", "power", "emptied"),
}


def fault_styles(bands: Iterable[FaultBand]) -> dict[str, str]:
    """The class of the style sheet by kind."""
    return {band.kind: _style(band.kind) for band in bands}


def _style(kind: str) -> str:
    for style, beginnings in _STYLES.items():
        if kind.startswith(beginnings):
            return style
    return "operations"
