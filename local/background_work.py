"""Work that goes on in a thread of its own while something else is done."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from types import TracebackType
from typing import Self


class BackgroundWork(ABC):
    """Goes on from `__enter__` to `__exit__`, once, unless it ends earlier by itself.

    It is told to end however the context is left, and when Ctrl-C or SIGTERM comes while it is being entered: a thread
    that nothing ends would keep the program alive. What `_work` raises, `__exit__` raises, unless the context is left
    by another error.
    """

    def __init__(self, name: str) -> None:
        """Nothing has begun yet. `name` is the thread's."""
        self._is_ended = Event()
        """Set when `_work` is to end."""
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._done: Future[None] | None = None

    @abstractmethod
    def _work(self) -> None:
        """Returns soon after `_is_ended` is set."""

    def __enter__(self) -> Self:
        try:
            self._done = self._pool.submit(self._work)
        except BaseException:
            # By a signal: the thread may have been started.
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        if self._done is not None and error is None:
            self._done.result()

    def _end(self) -> None:
        self._is_ended.set()
        self._pool.shutdown()
