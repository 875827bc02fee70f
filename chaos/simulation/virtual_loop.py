"""An event loop on which hours pass in no time, and the part of it that one simulated process has."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _Selector(selectors.SelectSelector):
    """Never waits: what the loop would have waited, it skips."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everything waits for something that cannot happen"
        # At least a microsecond passes in each turn, or code that waits for the clock would spin.
        self.now += max(timeout, 1e-6)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Close it, or use it in a `with` statement. No sockets, no threads."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)
        # How many jobs the executor had.
        self.job_count = 0

    def time(self) -> float:
        return self._virtual.now

    def run_in_executor(self, _: Any, func: Callable[[*Ts], T], *args: *Ts) -> "asyncio.Future[T]":
        """In a later turn, without a thread."""
        self.job_count += 1
        future: asyncio.Future[T] = self.create_future()
        self.call_soon(_run_job, future, func, args)
        return future

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.run_until_complete(coroutine)

    def __enter__(self) -> "VirtualLoop":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _run_job(future: "asyncio.Future[Any]", func: Callable[..., Any], args: tuple[Any, ...]) -> None:
    if not future.cancelled():
        try:
            result = func(*args)
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(result)
