"""What is measured: a cluster by its bootstrap address, and its processes where they are on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from ..chaos.local_node import LocalNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A cluster that runs."""

    name: str
    bootstrap: str
    version: str = ""
    pids: tuple[int, ...] = ()
    """Its processes on this machine; without them CPU and memory are not measured."""
    fresh_node: Callable[[], AbstractContextManager[LocalNode]] | None = None
    """Gives another node of the same kind, ready to be started; without it, start-up is not measured."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What its nodes were started with, for the record."""
