"""A reader that keeps its partitions in a fetch session (KIP-227), as Apache Kafka's consumer does.

A request names only the partitions that have moved, and an answer those that have changed.
"""

from __future__ import annotations

from collections.abc import Iterable

from .wire import (
    NEW_FETCH_SESSION,
    FetchSessionId,
    RequestRefusedError,
    Socket,
    fetch_frame,
    fetch_session_id,
    next_offsets,
)


class FetchSession:
    """One connection and its session."""

    def __init__(self, connection: Socket, topic: str, partitions: Iterable[int]) -> None:
        """Reads each partition from its begin; nothing is sent yet."""
        self._connection = connection
        self._topic = topic
        self._moved = dict.fromkeys(partitions, 0)
        self._session = NEW_FETCH_SESSION

    def begin(self) -> None:
        """Has the session made, with all partitions in it; they are empty. Raises RequestRefusedError when there is no
        room for one."""
        self._connection.send(fetch_frame(self._topic, self._moved, max_wait_ms=0, session=self._session))
        answer = self._connection.receive_answer()
        self._take(answer)
        session_id = fetch_session_id(answer)
        if not session_id:
            raise RequestRefusedError("the broker made no fetch session: its cache is full")
        self._session = FetchSessionId(session_id, 1)

    def send(self, *, max_wait_ms: int) -> None:
        """Asks for what comes next."""
        self._connection.send(fetch_frame(self._topic, self._moved, max_wait_ms=max_wait_ms, session=self._session))
        self._moved = {}
        self._session = FetchSessionId(self._session.id, self._session.epoch + 1)

    def receive(self) -> int:
        """Waits for the answer; returns how many partitions brought records. Raises RequestRefusedError."""
        return self._take(self._connection.receive_answer())

    def _take(self, answer: memoryview) -> int:
        self._moved = next_offsets(self._topic, answer)
        return len(self._moved)
