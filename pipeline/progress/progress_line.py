"""What a person reads of a job while it runs: a line that changes on a terminal, else one now and then."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from .progress_table import QueryStatus

# Between two plain lines of a query, by the times of its batches.
PLAIN_EVERY_MS: Final = 10_000


class ProgressLine:
    """Writes to `console`, which is that of standard error. It draws when something changes, never by a clock."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._told_ms: dict[str, int] = {}
        self._lines: dict[str, str] = {}

    def progressed(self, status: QueryStatus) -> None:
        newest = status.newest
        assert newest is not None, "a progress came"
        if self._console.is_terminal:
            self._draw(status)
        elif newest.ended_ms - self._told_ms.get(status.name, 0) >= PLAIN_EVERY_MS:
            self._told_ms[status.name] = newest.ended_ms
            self.say(line_of(status))

    def ended(self, status: QueryStatus) -> None:
        """The last line of a run says where it stopped."""
        self._lines.pop(status.name, None)
        self._told_ms.pop(status.name, None)
        if self._live is not None and not self._lines:
            self._live.stop()
            self._live = None
        self.say(line_of(status))

    def say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def warn(self, sentence: str) -> None:
        self.say(f"warning: {sentence}")

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _draw(self, status: QueryStatus) -> None:
        self._lines[status.name] = line_of(status)
        text = Text("\n".join(self._lines.values()), overflow="ellipsis", no_wrap=True)
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(text, refresh=True)


def line_of(status: QueryStatus) -> str:
    """`lake: batch 12, 40,000 rows, 5,210 rows/s, 1,200 behind, batch took 0.8 s`."""
    parts = []
    newest = status.newest
    if newest is not None:
        parts += [f"batch {newest.batch_id:,}", f"{status.input_rows:,} rows"]
        if status.is_running:
            parts.append(f"{newest.processed_rows_per_second:,.0f} rows/s")
        if (lag := newest.lag) is not None:
            parts.append(f"{lag:,} behind")
        if newest.states:
            parts.append(f"{sum(one.rows for one in newest.states):,} rows of state")
        if status.is_running:
            parts.append(f"batch took {newest.duration_s:.1f} s")
    if status.starts > 1:
        parts.append(f"restarted {status.starts - 1} times" if status.starts > 2 else "restarted once")
    if not status.is_running:
        parts.insert(0, "ended with an error" if status.has_failed else "ended")
    return f"{status.name}: {', '.join(parts)}"
