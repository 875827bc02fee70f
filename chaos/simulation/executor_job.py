"""Work of an executor's thread in a simulation."""

import asyncio
from collections.abc import Callable
from typing import Any


class ExecutorJob:
    """It is done all at once (`run`), and told to the process later (`tell`)."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], future: "asyncio.Future[Any]") -> None:
        self._function = function
        self._args = args
        self._future = future
        self._result: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._result = self._function(*self._args)
        except (Exception, asyncio.CancelledError) as error:
            self._error = error

    def tell(self) -> None:
        if self._future.cancelled():
            return
        if self._error is not None:
            self._future.set_exception(self._error)
        else:
            self._future.set_result(self._result)
