"""What a client knows of a partition that it reads from its beginning, brought up to its end before it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...client import clock
from .outcomes import NotDoneError
from .session import Received, Session

_POLL_S: Final = 0.1
_CATCH_UP_S: Final = 10.0


class PartitionViews:
    """Of the partitions that `session` was assigned, from their beginnings; `take` gets every record once, in order.

    Where a partition is read again from an offset that was read before, as after a reset, `forget` gets its key first:
    what is known begins there.
    """

    def __init__(
        self, session: Session, *, take: Callable[[str, Received], None], forget: Callable[[str], None]
    ) -> None:
        self._session = session
        self._take = take
        self._forget = forget
        self._next: dict[str, int] = {}

    def catch_up(self, key: str) -> None:
        """Reads up to the end that the partition has now. Raises NotDoneError where that takes too long."""
        end = self._session.end(key)
        deadline_s = clock.monotonic_s() + _CATCH_UP_S
        while self._session.reached(key) < end:
            if clock.monotonic_s() >= deadline_s:
                raise NotDoneError(f"{key} was read to {self._session.reached(key)} of {end} in {_CATCH_UP_S:g} s")
            for place, records in self._session.poll(_POLL_S).items():
                for record in records:
                    if record.offset < self._next.get(place, 0):
                        self._forget(place)
                    self._next[place] = record.offset + 1
                    self._take(place, record)
