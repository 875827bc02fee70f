"""A `ChaosCluster` for tests that are coroutines: its methods are awaited, its faults held by `async with`.

    topic = await cluster.topic()
    async with cluster.kill(await cluster.leader(topic)):
        …

It needs no plugin of its own for pytest-asyncio or anyio (with its asyncio backend): nothing here runs before a test
awaits it. Each call runs in a thread of the loop's executor, so that a client in the same loop goes on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from functools import partial
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from .chaos_cluster import ChaosCluster
from .held_fault import HeldFault
from .request_orders import Barrier, HeldRequests

T = TypeVar("T")


class Awaited(Generic[T]):
    """A call that is made when it is awaited, or entered by `async with`, which heals what it began."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._held: HeldFault | None = None

    def __await__(self) -> Generator[Any, None, T]:
        return _in_thread(self._call).__await__()

    async def __aenter__(self) -> T:
        result = await _in_thread(self._call)
        if not isinstance(result, HeldFault | AsyncHeld):
            raise TypeError("only a fault is held by `async with`: await other calls")
        self._held = result.fault if isinstance(result, AsyncHeld) else result
        return result

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._held is not None:
            await _in_thread(self._held.heal)


class AsyncHeld:
    """A fault that holds; what waits is awaited."""

    def __init__(self, fault: HeldFault) -> None:
        self.fault = fault

    def __getattr__(self, name: str) -> Any:
        return _awaited(getattr(self.fault, name))


class _AsyncFaults:
    """`cluster.faults`, awaited."""

    def __init__(self, cluster: ChaosCluster) -> None:
        self._faults = cluster.faults

    def __getattr__(self, name: str) -> Any:
        return _awaited(getattr(self._faults, name))


class AsyncChaosCluster:
    """Every method of `ChaosCluster` under its name, awaited. Its attributes are plain."""

    def __init__(self, cluster: ChaosCluster | None = None, **options: Any) -> None:
        """Around a cluster that runs, or around one of its own with these options, for `async with`."""
        self._cluster = ChaosCluster(**options) if cluster is None else cluster
        self.faults = _AsyncFaults(self._cluster)

    def __getattr__(self, name: str) -> Any:
        return _awaited(getattr(self._cluster, name))

    async def __aenter__(self) -> Self:
        await _in_thread(self._cluster.__enter__)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await _in_thread(self._cluster.close)


def _awaited(value: Any) -> Any:
    """What is no method is what it is."""
    if not callable(value):
        return value

    def call(*arguments: Any, **options: Any) -> Awaited[Any]:
        return Awaited(lambda: _held(value(*arguments, **options)))

    return call


def _held(result: Any) -> Any:
    return AsyncHeld(result) if isinstance(result, Barrier | HeldRequests | HeldFault) else result


async def _in_thread(call: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, partial(call))
