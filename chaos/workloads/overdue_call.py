"""A call that may never return, given up on at a deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def call_within(timeout_s: float, call: Callable[[], T]) -> T:
    """What `call` returns; raises what it raises.

    Raises TimeoutError where it does neither in time. It goes on then, in a thread that ends with the process at the
    latest, and keeps what it refers to: who asked must do without its effects, and without what it uses.
    """
    returned: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            returned.append(call())
        except BaseException as error:
            raised.append(error)

    # An executor waits for its threads when the process is to end.
    thread = threading.Thread(target=run, name="overdue-call", daemon=True)  # noqa: TID251
    thread.start()
    thread.join(timeout_s)
    if raised:
        raise raised[0]
    if not returned:
        raise TimeoutError(f"no return within {timeout_s:g} s")
    return returned[0]
