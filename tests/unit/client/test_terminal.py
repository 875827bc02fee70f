"""Plain tables, for files and pipes."""

import pytest

from penstock.client.terminal import plain_table, print_table


def test_plain_table_is_aligned_and_has_no_blanks_at_line_ends() -> None:
    lines = plain_table(("topic", "partitions"), [("a", "10"), ("longer", "7")], (False, True))
    assert list(lines) == ["topic   partitions", "a               10", "longer           7"]


def test_plain_table_of_nothing_is_its_heading() -> None:
    assert list(plain_table(("topic", "partitions"), [], (False, False))) == ["topic  partitions"]


def test_table_in_a_pipe_is_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "list", "flag"), [("x" * 300, (1, 2), None)])
    out = capsys.readouterr().out
    assert out.splitlines()[1].split() == ["x" * 300, "1,2", "-"]
