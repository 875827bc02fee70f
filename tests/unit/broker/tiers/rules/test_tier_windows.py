"""Windows of the tier in memory: which ones stay, and which make room."""

from __future__ import annotations

from uuid import UUID

from penstock.broker.tiers.rules.tier_windows import TierWindows, Window

SIZE = 100
PATIENCE_MS = 10
ROOM = 3


class Windows:
    def __init__(self) -> None:
        self.it = TierWindows(limit_bytes=ROOM * SIZE, patience_ms=PATIENCE_MS)

    def load(self, segment: int, *, now_ms: int = 0, is_ahead: bool = False, size: int = SIZE) -> Window | None:
        if not self.it.reserve(size, now_ms, is_ahead=is_ahead):
            return None
        self.it.release(size)
        window = Window(UUID(int=segment), 0, bytes(size), now_ms)
        self.it.add(window, is_ahead=is_ahead)
        return window

    def there(self) -> list[int]:
        return [number for number in range(10) if self.it.find(UUID(int=number), 0) is not None]


def test_a_window_that_is_read_stays_and_others_wait() -> None:
    windows = Windows()
    first = windows.load(0)
    assert first is not None
    windows.load(1)
    windows.load(2)
    assert windows.load(3) is None
    assert not windows.it.use(first, SIZE // 2, 0)
    assert windows.load(3) is None
    assert windows.it.use(first, SIZE, 0)
    assert windows.load(3) is not None
    assert windows.there() == [1, 2, 3]


def test_a_reader_that_does_not_go_on_keeps_its_room_no_longer() -> None:
    windows = Windows()
    for number in range(ROOM):
        windows.load(number, now_ms=number)
    assert windows.load(3, now_ms=PATIENCE_MS - 1) is None
    assert windows.load(3, now_ms=PATIENCE_MS) is not None
    assert windows.there() == [1, 2, 3]


def test_what_was_loaded_ahead_goes_before_what_is_wanted_and_pushes_nothing_out() -> None:
    windows = Windows()
    windows.load(0)
    windows.load(1, is_ahead=True)
    windows.load(2, is_ahead=True)
    assert windows.load(3, is_ahead=True) is None
    assert windows.load(4) is not None
    assert windows.there() == [0, 2, 4]


def test_loads_under_way_have_their_room() -> None:
    windows = Windows()
    for _ in range(ROOM):
        assert windows.it.reserve(SIZE, 0, is_ahead=False)
    assert not windows.it.reserve(SIZE, 0, is_ahead=False)
    windows.it.release(SIZE)
    assert windows.it.reserve(SIZE, 0, is_ahead=False)


def test_one_that_is_larger_than_the_room_is_taken_in_alone() -> None:
    windows = Windows()
    small = windows.load(0)
    assert small is not None
    assert windows.load(1, size=2 * ROOM * SIZE) is None
    windows.it.use(small, SIZE, 0)
    assert windows.load(1, size=2 * ROOM * SIZE) is not None
    assert windows.there() == [1]
    assert windows.it.size_bytes == 2 * ROOM * SIZE


def test_a_window_is_found_by_what_it_has() -> None:
    windows = TierWindows(limit_bytes=1000, patience_ms=PATIENCE_MS)
    segment = UUID(int=1)
    for start in (0, 90):
        assert windows.reserve(SIZE, 0, is_ahead=False)
        windows.release(SIZE)
        windows.add(Window(segment, start, bytes(SIZE), 0), is_ahead=False)
    found = [windows.find(segment, position) for position in (0, 89, 90, 189, 190)]
    assert [None if one is None else one.start for one in found] == [0, 0, 90, 90, None]
    assert windows.find(UUID(int=2), 0) is None
