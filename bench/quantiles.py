"""Latencies in a few figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

QUANTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_NS_PER_MS: Final = 1e6


def latencies(name: str, times_ns: Sequence[int]) -> dict[str, float | None]:
    """`name_p50_ms` and so on; empty without any time.

    A quantile is a time that was measured, never one between two.
    """
    ordered = sorted(times_ns)
    if not ordered:
        return {}
    return {
        f"{name}_{label}_ms": ordered[min(len(ordered) - 1, int(len(ordered) * quantile))] / _NS_PER_MS
        for label, quantile in QUANTILES.items()
    }
