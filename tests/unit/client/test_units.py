"""Numbers as people read them."""

import pytest

from penstock.client.units import format_age, format_bytes, format_records, format_seconds, format_timestamp


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (31053850, "29.6 MiB"),
        (5 << 30, "5.0 GiB"),
        (3 << 40, "3.0 TiB"),
    ],
)
def test_bytes(size_bytes: int, text: str) -> None:
    assert format_bytes(size_bytes) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.0123, "12 ms"), (1.234, "1.23 s"), (125.4, "2 min 5 s")])
def test_seconds(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


def test_records_have_a_plural() -> None:
    assert [format_records(count) for count in (0, 1, 336776)] == ["0 records", "1 record", "336,776 records"]


def test_timestamps_are_utc_and_never_fail() -> None:
    assert format_timestamp(0) == "1970-01-01T00:00:00.000Z"
    assert format_timestamp(-1) == "1969-12-31T23:59:59.999Z"
    assert format_timestamp(2**62) == str(2**62)


@pytest.mark.parametrize(
    ("age_ms", "text"),
    [
        (0, "now"),
        (3_999, "3 s ago"),
        (119_999, "119 s ago"),
        (180_000, "3 min ago"),
        (7_200_000, "2 h ago"),
        (3 * 86_400_000, "3 days ago"),
    ],
)
def test_ages(age_ms: int, text: str) -> None:
    assert format_age(age_ms) == text
