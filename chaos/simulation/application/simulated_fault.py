"""A fault of a simulated cluster: it begins when it is awaited, or with `async with`, which heals it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from types import TracebackType
from typing import Any, Self


class SimulatedFault:
    """`begin` returns the fault in words, and what heals it."""

    def __init__(self, begin: Callable[[], Awaitable[tuple[str, Callable[[], Awaitable[None]]]]]) -> None:
        self.what = ""
        self.holds = False
        self._begin = begin
        self._heal: Callable[[], Awaitable[None]] | None = None

    def __await__(self) -> Generator[Any, None, Self]:
        return self._start().__await__()

    async def _start(self) -> Self:
        if self._heal is None:
            self.what, self._heal = await self._begin()
            self.holds = True
        return self

    async def heal(self) -> None:
        """Returns once it is over; healing it twice does nothing more."""
        if self.holds and self._heal is not None:
            self.holds = False
            await self._heal()

    async def __aenter__(self) -> Self:
        return await self._start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.heal()

    def __repr__(self) -> str:
        return f"<{self.what or 'a fault'}{'' if self.holds else ', not held'}>"
