"""An event loop on which hours pass in no time."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar, TypeVarTuple

import pytest

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _Selector(selectors.SelectSelector):
    """Never waits: what the loop would have waited, it skips."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everything waits for something that cannot happen"
        self.now += max(timeout, 1e-6)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now

    def run_in_executor(self, _: Any, func: Callable[[*Ts], T], *args: *Ts) -> "asyncio.Future[T]":
        """In a later turn, without a thread."""
        future: asyncio.Future[T] = self.create_future()

        def run() -> None:
            if not future.cancelled():
                try:
                    future.set_result(func(*args))
                except Exception as error:
                    future.set_exception(error)

        self.call_soon(run)
        return future

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.run_until_complete(asyncio.wait_for(coroutine, 1_000_000))


@pytest.fixture
def virtual_loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    yield loop
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
