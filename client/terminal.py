"""What commands print: results on standard output, all that is said about them on standard error.

To a person's terminal goes what `rich` draws; to a file or a pipe, plain text without colour, as wide as it must be.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import click

if TYPE_CHECKING:
    from rich.console import Console


class Progress(Protocol):
    """How far a long work is."""

    def advance_to(self, done: int) -> None: ...


def print_json(value: object) -> None:
    """One object, on one line, at once: programs read it while the command still runs."""
    click.echo(json.dumps(value, ensure_ascii=False))
    sys.stdout.flush()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table of results. Numbers stand to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    to_right = [bool(cells) and all(_is_number(row[index]) for row in cells) for index in range(len(columns))]
    if not sys.stdout.isatty():
        for line in plain_table(columns, cells, to_right):
            click.echo(line)
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name, right in zip(columns, to_right, strict=True):
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in cells:
        table.add_row(*row)
    console_of(sys.stdout).print(table)


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]], to_right: Sequence[bool]) -> Iterator[str]:
    """The lines of a table without anything drawn, columns two blanks apart, no line with blanks at its end."""
    widths = [max(len(name), *(len(row[index]) for row in rows), 0) for index, name in enumerate(columns)]
    for row in (columns, *rows):
        aligned = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, to_right, strict=True)
        ]
        yield "  ".join(aligned).rstrip()


def say(sentence: str) -> None:
    """Tells a person something that is not a result."""
    click.echo(sentence, err=True)


@contextmanager
def progress(what: str, *, total: int | None, unit: str, shown: bool = True) -> Iterator[Progress]:
    """Shows how a long work goes, on a terminal only. `unit`: `bytes` or what is counted; no total: unknown."""
    if not shown or not sys.stderr.isatty():
        yield _Silent()
        return
    from .progress_bar import progress_bar

    with progress_bar(console_of(sys.stderr), what, total=total, unit=unit) as bar:
        yield bar


def console_of(stream: object) -> "Console":
    """A console on standard output or standard error that styles only what it is told to style."""
    from rich.console import Console

    return Console(stderr=stream is sys.stderr, highlight=False)


class _Silent:
    def advance_to(self, done: int) -> None:
        pass


def _cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ",".join(str(item) for item in value)
        case _:
            return str(value)


def _is_number(text: str) -> bool:
    return text == "-" or text.lstrip("-").replace(",", "").replace(".", "", 1).isdigit()
