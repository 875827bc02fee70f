"""What to fetch from one leader: which partitions, from where, and what of it the leader's fetch session knows
(KIP-227).

Rules only; the partitions' positions are asked for when a request is made. A partition is in one of these states:

    state     entered by                            left by
    fetching  `add`, a delay that is over           `delay`, `remove`
    delayed   `delay`, `pause`                      its time is over, `add`, `remove`

Delays grow from DELAY_MS_MIN with each failure in a row: the first ones mean only that this node applied an election
before the new leader did.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ....protocol.fetch import NO_SESSION
from ....protocol.replica_fetch import FollowedPartition

FollowedKey: TypeAlias = tuple[bytes, int]
"""Topic id and index."""

FULL_FETCH_EPOCH = 0
SESSION_EPOCH_MAX = 2**31 - 1
DELAY_MS_MIN = 20


class PlannedFetch(NamedTuple):
    """A request: `partitions` are new in the session or have moved, `forgotten` are no part of it any more."""

    number: int
    """One more than that of the request before."""
    session_id: int
    session_epoch: int
    partitions: list[tuple[bytes, int, FollowedPartition]]
    forgotten: list[FollowedKey]


class FetchPlan:
    """`next_fetch` makes the next request, `on_answer` or `end_session` tell what came of the oldest.

    While `needs_session` holds there may be only one on its way; else a second may follow the first, whose wait it
    ends.
    """

    def __init__(self, position_of: Callable[[FollowedKey], FollowedPartition], *, delay_ms_max: int) -> None:
        self._position_of = position_of
        self._delay_ms_max = delay_ms_max
        # Those that are fetched, in the order in which they came.
        self._fetching: dict[FollowedKey, None] = {}
        # When those that failed are tried again.
        self._due_ms: dict[FollowedKey, int] = {}
        self._failure_counts: dict[FollowedKey, int] = {}
        # As the last request told it.
        self._in_session: dict[FollowedKey, FollowedPartition] = {}
        self._last_number = 0
        # The partitions that the last request named, unless it was a full fetch.
        self._told_last: set[FollowedKey] = set()
        # What the session may have wrongly.
        self._changed: dict[FollowedKey, None] = {}
        self._session_id = NO_SESSION
        self._session_epoch = FULL_FETCH_EPOCH
        # Whether the leader has no room for a session.
        self._is_refused = False

    def __len__(self) -> int:
        return len(self._fetching) + len(self._due_ms)

    @property
    def needs_session(self) -> bool:
        """The next request asks for everything."""
        return self._session_epoch == FULL_FETCH_EPOCH

    @property
    def begins_session(self) -> bool:
        """The next request is there to begin a session: nothing could end its wait, so it is not to wait."""
        return self.needs_session and not self._is_refused

    @property
    def has_news(self) -> bool:
        """Whether the next request would tell the leader anything new."""
        return bool(self._changed)

    @property
    def next_due_ms(self) -> int | None:
        """When the first delay is over."""
        return min(self._due_ms.values(), default=None)

    # The partitions.

    def add(self, key: FollowedKey) -> None:
        """To be fetched from now on, or from another position."""
        self._due_ms.pop(key, None)
        self._failure_counts.pop(key, None)
        self._fetching[key] = None
        self._changed[key] = None

    def remove(self, key: FollowedKey) -> None:
        self._due_ms.pop(key, None)
        self._failure_counts.pop(key, None)
        self._leave_out(key)

    def delay(self, key: FollowedKey, now_ms: int) -> None:
        """It failed: others are not to wait for it, nor is the leader to be asked again and again."""
        if key not in self._fetching:
            return
        self._leave_out(key)
        count = self._failure_counts[key] = self._failure_counts.get(key, 0) + 1
        self._due_ms[key] = now_ms + min(DELAY_MS_MIN << min(count - 1, 16), self._delay_ms_max)

    def pause(self, key: FollowedKey, due_ms: int) -> None:
        """Nothing is wrong with it, but it is to wait until `due_ms`."""
        if key in self._fetching:
            self._leave_out(key)
            self._due_ms[key] = due_ms

    def _leave_out(self, key: FollowedKey) -> None:
        """Of the requests from now on, which is news for a leader that was asked for it."""
        self._fetching.pop(key, None)
        if key in self._in_session:
            self._changed[key] = None
        else:
            self._changed.pop(key, None)

    def is_delayed(self, key: FollowedKey) -> bool:
        """Whether it waits, as something failed or is throttled."""
        return key in self._due_ms

    def is_in_session(self, key: FollowedKey) -> bool:
        """Whether the last request asked for it, so that the answer to that may have records of it."""
        return key in self._in_session

    def end_delays(self, now_ms: int) -> None:
        """What has waited long enough is fetched again."""
        for key in [key for key, due_ms in self._due_ms.items() if due_ms <= now_ms]:
            del self._due_ms[key]
            self._fetching[key] = None
            self._changed[key] = None

    def expects(self, key: FollowedKey, number: int) -> bool:
        """Whether the partition in the answer to request `number` is what is asked for: it is still wanted, from where
        it was when that request was sent. One behind it may have told another place since. Where the log starts, which
        retention moves at any time, is nothing that the leader answers by."""
        if key not in self._fetching or (number != self._last_number and key in self._told_last):
            return False
        asked = self._in_session.get(key)
        present = self._position_of(key)
        return asked is not None and asked._replace(log_start_offset=present.log_start_offset) == present

    def on_moved(self, key: FollowedKey) -> None:
        """The partition may have moved by itself, by retention or a sync: the next request tells where it is now, if
        none has."""
        if key in self._fetching and self._in_session.get(key) != self._position_of(key):
            self._changed[key] = None

    def on_progress(self, key: FollowedKey) -> None:
        """An answer was taken in: the partition's position has moved, and nothing is wrong with it."""
        self._failure_counts.pop(key, None)
        self._changed[key] = None

    # The session.

    def next_fetch(self, now_ms: int) -> PlannedFetch | None:
        """The next request; None while there is nothing to ask for."""
        self.end_delays(now_ms)
        if not self._fetching:
            return None
        self._last_number += 1
        self._told_last.clear()
        if self.needs_session:
            self._in_session = {key: self._position_of(key) for key in self._fetching}
            self._changed.clear()
            partitions = [(*key, position) for key, position in self._in_session.items()]
            return PlannedFetch(self._last_number, self._session_id, FULL_FETCH_EPOCH, partitions, [])
        changed: list[tuple[bytes, int, FollowedPartition]] = []
        forgotten: list[FollowedKey] = []
        for key in self._changed:
            known = self._in_session.get(key)
            if key in self._fetching:
                position = self._position_of(key)
                if position != known:
                    self._in_session[key] = position
                    changed.append((*key, position))
                    self._told_last.add(key)
            elif known is not None:
                del self._in_session[key]
                forgotten.append(key)
        self._changed.clear()
        session_epoch = self._session_epoch
        self._session_epoch = session_epoch + 1 if session_epoch < SESSION_EPOCH_MAX else 1
        return PlannedFetch(self._last_number, self._session_id, session_epoch, changed, forgotten)

    def on_answer(self, session_id: int) -> None:
        """The request was answered, without an error of its own."""
        self._is_refused = session_id == NO_SESSION
        if self._is_refused:
            self.end_session()
        elif self.needs_session:
            self._session_epoch = 1
        self._session_id = session_id

    def end_session(self) -> None:
        """The leader has dropped the session, or its state is unknown. The next request begins another, and closes the
        present one if it is still there."""
        self._session_epoch = FULL_FETCH_EPOCH
