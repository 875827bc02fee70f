"""Answers of other brokers: many are asked at once, and one that is gone is no error of the whole."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final, TypeVar

from kio.static.primitive import i32Timedelta

from ....protocol.errors import KafkaError, error_info
from ....protocol.rest.resources import Unavailable

T = TypeVar("T")

ASKED_AT_ONCE_MAX: Final = 8
"""Requests of one operation that are on their way: brokers answer one after the other on a connection anyway."""

REQUEST_TIMEOUT_MS: Final = 30_000
"""For what a request waits in the broker that it asks."""
REQUEST_TIMEOUT: Final = i32Timedelta.parse(timedelta(milliseconds=REQUEST_TIMEOUT_MS))


def sentence(error: KafkaError) -> str:
    return error.message or error_info(error.code).sentence


def unavailable(source: str, error: KafkaError) -> Unavailable:
    return Unavailable(source=source, error_code=int(error.code), message=sentence(error))


async def gather(jobs: Sequence[Callable[[], Awaitable[T]]]) -> list[T | KafkaError]:
    """What the jobs return, or the KafkaError that one raises, in their order."""
    limit = asyncio.Semaphore(ASKED_AT_ONCE_MAX)

    async def one(job: Callable[[], Awaitable[T]]) -> T | KafkaError:
        async with limit:
            try:
                return await job()
            except KafkaError as error:
                return error

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(job)) for job in jobs]
    return [task.result() for task in tasks]
