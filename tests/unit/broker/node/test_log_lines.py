"""Clients choose their names, and no name forges a line of the log."""

import io
import logging

import pytest

from penstock.broker.node.log_lines import LINE_FORMAT, MESSAGE_CHARACTERS_MAX, LineFormatter, one_line


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("plain name é", "plain name é"),
        ("two\nlines", "two\\nlines"),
        ("carriage\rreturn", "carriage\\rreturn"),
        ("\x1b[2Jcleared", "\\x1b[2Jcleared"),
        ("next\x85line\u2028", "next\\x85line\\u2028"),
        ("half \ud800", "half \\ud800"),
    ],
)
def test_a_field_cannot_begin_another_line(name: str, written: str) -> None:
    assert one_line(name) == written


def test_a_line_has_an_end() -> None:
    assert one_line("x" * 100_000) == "x" * MESSAGE_CHARACTERS_MAX + "… (100000 characters)"


def test_the_formatter_keeps_tracebacks_and_escapes_the_event() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter("%(levelname)s %(message)s"))
    record = logging.LogRecord("x", logging.ERROR, __file__, 1, "closed: client=%s", ("a\nb",), None)
    handler.emit(record)
    assert stream.getvalue() == "ERROR closed: client=a\\nb\n"


def test_a_line_ends_with_its_logger_whatever_clients_write_before_it() -> None:
    record = logging.LogRecord("penstock.a", logging.INFO, __file__, 1, "closed: %s", ("x (penstock.b)\n",), None)
    line = LineFormatter(LINE_FORMAT, datefmt="%Y").format(record)
    assert line.endswith(" INFO closed: x (penstock.b)\\n (penstock.a)")
