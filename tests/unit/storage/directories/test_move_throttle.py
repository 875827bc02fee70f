"""The throttle of moves: what is owed is paid at the rate of its time, whatever the rate was before."""

from penstock.storage.directories.rules.move_throttle import MoveThrottle

UNLIMITED = float(2**63 - 1)


class Rate:
    def __init__(self, bytes_per_s: float) -> None:
        self.bytes_per_s = bytes_per_s
        self.throttle = MoveThrottle(lambda: self.bytes_per_s)

    def move(self, size_bytes: int) -> float:
        """How many seconds it takes."""
        throttle, waited_s = self.throttle, 0.0
        throttle.take(size_bytes)
        while pause_s := throttle.pause_s():
            waited_s += pause_s
            throttle.pass_s(pause_s)
        return waited_s


def test_what_moves_takes_as_long_as_the_rate_says() -> None:
    rate = Rate(2000)
    assert round(rate.move(4000), 3) == 2
    rate.bytes_per_s = 8000
    assert round(rate.move(4000), 3) == 0.5


def test_what_moved_without_a_limit_is_not_owed_when_there_is_one() -> None:
    rate = Rate(UNLIMITED)
    assert [rate.move(1_000_000) for _ in range(100)] == [0] * 100
    rate.bytes_per_s = 1000
    assert round(rate.move(2000), 3) == 2


def test_a_higher_rate_ends_a_pause() -> None:
    rate = Rate(1)
    rate.throttle.take(4096)
    assert rate.throttle.pause_s() == 0.5, "after which the rate is asked again"
    rate.bytes_per_s = 40_960
    assert round(rate.throttle.pause_s(), 3) == 0.1


def test_a_rate_of_0_stops_all_and_adds_nothing() -> None:
    rate = Rate(1000)
    rate.throttle.take(1000)
    rate.bytes_per_s = 0
    for _ in range(10):
        assert rate.throttle.pause_s() == 0.5
        rate.throttle.pass_s(0.5)
    rate.bytes_per_s = 1000
    assert round(rate.move(0), 3) == 1
