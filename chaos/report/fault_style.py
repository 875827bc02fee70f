"""How kinds of faults are told apart by colour: by what they are done to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..faults.kinds import KINDS
from .fault_band import FaultBand

# For kinds that this version does not know: the history may be another one's.
_OTHER: Final = "operations"


def fault_styles(bands: Iterable[FaultBand]) -> dict[str, str]:
    """The class of the style sheet by kind, which is the group of the kind."""
    return {band.kind: KINDS[band.kind].group if band.kind in KINDS else _OTHER for band in bands}
