"""What a person may write for a place in a partition."""

import pytest

from penstock.client.positions import AtOffset, AtTime, BeforeEnd, Edge, Position, parse_position

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", Edge.EARLIEST),
        ("beginning", Edge.EARLIEST),
        ("latest", Edge.LATEST),
        ("end", Edge.LATEST),
        ("0", AtOffset(0)),
        ("42", AtOffset(42)),
        ("-10", BeforeEnd(10)),
        ("@1359608400000", AtTime(1_359_608_400_000)),
        ("-500ms", AtTime(NOW_MS - 500)),
        ("-15m", AtTime(NOW_MS - 900_000)),
        ("-2h", AtTime(NOW_MS - 7_200_000)),
        ("-1d", AtTime(NOW_MS - 86_400_000)),
        ("2013-01-31", AtTime(1_359_590_400_000)),
        ("2013-01-31T05:00:00.001Z", AtTime(1_359_608_400_001)),
        ("2013-01-31T00:00-05:00", AtTime(1_359_608_400_000)),
        ("2013-01-31 05:00", AtTime(1_359_608_400_000)),
        ("1969-12-31T23:59:59.999Z", AtTime(-1)),
    ],
)
def test_position_is_read(text: str, position: Position) -> None:
    assert parse_position(text, NOW_MS) == position


@pytest.mark.parametrize("text", ["", "soon", "-", "-1w", "1.5", "@x", "2013-13-01", "+3"])
def test_what_is_no_position_is_refused_with_the_syntax(text: str) -> None:
    with pytest.raises(ValueError, match="use `earliest`"):
        parse_position(text, NOW_MS)
