"""Sensors are made when they are needed, keep what was recorded when a quota changes, and are dropped when idle."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.timing.rules.rate_sensors import (
    EXPIRY_INTERVAL_MS,
    SENSOR_IDLE_MS_MAX,
    THROTTLE_WINDOW_MS,
    RateSensors,
)


def made(sensors_max: int = 10) -> RateSensors[str]:
    return RateSensors(sample_count=11, window_ms=1000, sensors_max=sensors_max)


def names(sensors: RateSensors[str]) -> set[str]:
    return {name for name, _ in sensors}


def test_a_changed_bound_holds_for_what_was_recorded_before() -> None:
    sensors = made()
    sensor = sensors.sensor("a", 100, 0)
    assert sensor.use(900, 0) == 0
    assert sensors.sensor("a", 50, 0) is sensor
    assert sensor.use(0, 0) == 8000


def test_sensors_that_record_nothing_for_an_hour_are_dropped() -> None:
    sensors = made()
    idle, used = sensors.sensor("idle", 1, 0), sensors.sensor("used", 1, 0)
    used.record(1, SENSOR_IDLE_MS_MAX)
    sensors.sensor("new", 1, SENSOR_IDLE_MS_MAX + EXPIRY_INTERVAL_MS)
    assert names(sensors) == {"used", "new"}
    assert idle.is_dropped
    assert not used.is_dropped


def test_there_are_never_more_sensors_than_the_bound() -> None:
    sensors = made(sensors_max=10)
    for number in range(100):
        sensors.sensor(str(number), 1, number)
        assert len(sensors) <= 10
    assert "99" in names(sensors)


def test_throttle_times_are_averaged_over_a_minute() -> None:
    sensor = made().sensor("a", 1, 0)
    assert sensor.average_throttle_ms(0) == 0
    sensor.note_throttle(100, 0)
    sensor.note_throttle(300, THROTTLE_WINDOW_MS)
    assert sensor.average_throttle_ms(THROTTLE_WINDOW_MS) == 200
    assert sensor.average_throttle_ms(2 * THROTTLE_WINDOW_MS) == 300
    assert sensor.average_throttle_ms(3 * THROTTLE_WINDOW_MS) == 0


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(-100, 1000)), max_size=30))
def test_using_a_sensor_is_recording_and_asking_for_the_throttle_time(steps: list[tuple[int, int]]) -> None:
    used, recorded = made().sensor("a", 50, 0), made().sensor("a", 50, 0)
    now_ms = 0
    for passed_ms, value in steps:
        now_ms += passed_ms
        recorded.record(value, now_ms)
        assert used.use(value, now_ms) == recorded.throttle_time_ms(50, now_ms)
        assert used.rate(now_ms) == recorded.rate(now_ms)
