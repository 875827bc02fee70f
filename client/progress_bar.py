"""The bar that a terminal shows during long work."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from .units import format_count

# Redrawing costs more than most records do.
_REFRESHES_PER_SECOND: Final = 5


class _RateColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{format_count(int(task.speed))}/s", style="cyan")


class _Bar:
    def __init__(self, bars: Progress, task: TaskID) -> None:
        self._bars = bars
        self._task = task

    def advance_to(self, done: int) -> None:
        self._bars.update(self._task, completed=done)


@contextmanager
def progress_bar(console: Console, what: str, *, total: int | None, unit: str) -> Iterator[_Bar]:
    """A bar when `total` is known, else a spinner with a count. It is gone from the screen when the work is over."""
    counts: tuple[ProgressColumn, ...] = (
        (DownloadColumn(), TransferSpeedColumn())
        if unit == "bytes"
        else (MofNCompleteColumn(), TextColumn(unit), _RateColumn())
    )
    ends = (TimeElapsedColumn(),) if total is None else (BarColumn(), TimeRemainingColumn())
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        *counts,
        *ends,
        console=console,
        transient=True,
        refresh_per_second=_REFRESHES_PER_SECOND,
    ) as bars:
        yield _Bar(bars, bars.add_task(what, total=total))
