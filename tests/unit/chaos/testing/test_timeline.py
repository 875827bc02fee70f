"""The time line of a failed test: in order, what was repeated in one line, the end of it when it is long."""

from __future__ import annotations

from penstock.chaos.testing.timeline import Moment, Timeline, lines_of

MS = 1_000_000


def test_lines_have_seconds_since_the_start_and_the_source() -> None:
    moments = [
        Moment(1_500 * MS, "test", "begins: node 1 killed"),
        Moment(1_750 * MS, "node 2", "Produce orders-0: ok"),
    ]
    assert lines_of(moments, 1_000 * MS) == [
        "   0.500  test    begins: node 1 killed",
        "   0.750  node 2  Produce orders-0: ok",
    ]


def test_what_is_repeated_is_one_line_until_something_else_happens() -> None:
    fetches = [Moment(second * 1_000 * MS, "node 1", "Fetch: ok") for second in range(3)]
    lines = lines_of([*fetches, Moment(4_000 * MS, "test", "x"), Moment(5_000 * MS, "node 1", "Fetch: ok")], 0)
    assert lines == [
        "   0.000  node 1  Fetch: ok (×3, until    2.000)",
        "   4.000  test    x",
        "   5.000  node 1  Fetch: ok",
    ]


def test_a_long_one_keeps_its_end() -> None:
    lines = lines_of([Moment(number * MS, "test", str(number)) for number in range(1_000)], 0)
    assert len(lines) == 201
    assert lines[0] == "… 800 lines before"
    assert lines[-1].endswith("test    999")


def test_each_test_begins_a_new_one() -> None:
    timeline = Timeline()
    timeline.note("of the test before")
    timeline.begin()
    timeline.note("of this test")
    assert timeline.text([], {}).endswith("test    of this test")
    timeline.begin()
    assert timeline.text([], {}) == "nothing happened"
