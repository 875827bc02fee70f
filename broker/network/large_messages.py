"""Messages about many partitions: read and written in a thread and answered in turns, so that others need not wait.

A partition costs some microseconds to read, to answer and to write, and there may be ten thousand in a message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, ParamSpec, TypeVar

from .rules.large_response import LargeResponse

Q = TypeVar("Q")
A = TypeVar("A")
R = TypeVar("R")
P = ParamSpec("P")

LARGE_BODY_BYTES: Final = 8192
"""From there on a request is read in a thread: some hundreds of partitions, two milliseconds."""
ITEMS_A_TURN: Final = 500


def in_thread(do: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> Awaitable[R]:
    """What `do` gives, called in a thread of the executor."""
    return asyncio.get_running_loop().run_in_executor(None, partial(do, *arguments, **named))


def answer_each(
    items: Sequence[Q], answer: Callable[[Q], A], response_of: Callable[[Sequence[A]], R]
) -> R | Awaitable[LargeResponse[R]]:
    """The response from what `answer` gives for each item: at once for few items, and for many in turns."""
    if len(items) <= ITEMS_A_TURN:
        return response_of([*map(answer, items)])
    return _answer_in_turns(items, answer, response_of)


async def _answer_in_turns(
    items: Sequence[Q], answer: Callable[[Q], A], response_of: Callable[[Sequence[A]], R]
) -> LargeResponse[R]:
    answers = await in_turns(items, answer)
    return LargeResponse(lambda: response_of(answers))


async def in_turns(items: Sequence[Q], answer: Callable[[Q], A]) -> Sequence[A]:
    """What `answer` gives for each item; between some hundreds of them the event loop does what else there is."""
    answers: list[A] = []
    for start in range(0, len(items), ITEMS_A_TURN):
        if start:
            await asyncio.sleep(0)
        answers += map(answer, items[start : start + ITEMS_A_TURN])
    return answers
