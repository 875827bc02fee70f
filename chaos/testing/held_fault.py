"""A fault that holds from the call that began it until it is healed: by hand, or at the end of a `with`."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self


class HeldFault:
    """`what` is the fault in words. It holds already; healing it twice does nothing more."""

    def __init__(self, what: str, heal: Callable[[], None]) -> None:
        self.what = what
        self._heal = heal
        self.holds = True

    def heal(self) -> None:
        """Returns once the cluster is as it was, but for what clients and nodes have to catch up with."""
        if self.holds:
            self.holds = False
            self._heal()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.heal()

    def __repr__(self) -> str:
        return f"<{self.what}{'' if self.holds else ', healed'}>"
