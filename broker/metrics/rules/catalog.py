"""All metrics of a node, by the module that defines them."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Final

from . import (
    cleaner_metrics,
    coordinator_metrics,
    lag_metrics,
    process_metrics,
    quorum_metrics,
    quota_metrics,
    replica_metrics,
    scrub_metrics,
    telemetry_metrics,
    tier_metrics,
    traffic_metrics,
)
from .metric import Metric

MODULES: Final = (
    traffic_metrics,
    quota_metrics,
    replica_metrics,
    cleaner_metrics,
    scrub_metrics,
    coordinator_metrics,
    lag_metrics,
    quorum_metrics,
    telemetry_metrics,
    tier_metrics,
    process_metrics,
)


def catalog() -> Mapping[str, tuple[Metric, ...]]:
    """By the module's sentence, in the order in which they are defined."""
    return {_sentence(module): _defined_in(module) for module in MODULES}


def _sentence(module: ModuleType) -> str:
    assert module.__doc__ is not None, "every module has a docstring"
    return module.__doc__.strip().rstrip(".")


def _defined_in(module: ModuleType) -> tuple[Metric, ...]:
    return tuple(one for one in vars(module).values() if isinstance(one, Metric))
