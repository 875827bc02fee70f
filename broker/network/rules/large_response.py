"""A response about many partitions, which takes long to make and to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

R = TypeVar("R")


class LargeResponse(Struct, Generic[R], frozen=True):
    """A response that is made and written in a thread, of what does not change any more."""

    make: Callable[[], R]
