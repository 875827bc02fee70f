"""Resident memory of a target's processes as it is now: behind the other loads of a round, that of a loaded node."""

from __future__ import annotations

from collections.abc import Mapping

from ..target import Target
from ..usage import resident_mib


def memory(target: Target) -> Mapping[str, float | None]:
    """Nothing is done; None where the processes are not known."""
    return {"loaded_mib": resident_mib(target.pids) if target.pids else None}
