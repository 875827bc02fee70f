"""What one client process does, line by line in a file of its own that outlives it.

Each line is an `Operation` without its index, which it gets when the files of all clients are merged by time
(`merged`). A line that is cut off by a kill was never told: its invocation stands, and the outcome is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from ...client import clock
from ...local.errors import ClusterError
from .operation import EventType, Operation

_ENCODER: Final = msgspec.json.Encoder()


class ClientHistory:
    """Appends to the file at `path`. `start_ns` is the beginning of the run by the monotonic clock, which all processes
    of a machine share. `process` numbers one life of a client; `next_life` begins another, `stride` further."""

    def __init__(self, path: Path, *, process: int, stride: int, start_ns: int) -> None:
        self.process = process
        self._stride = stride
        self._start_ns = start_ns
        # Whole lines only, each in one write: the kernel keeps what a killed process has written.
        self._file = path.open("ab", buffering=0)
        self._open: tuple[str, Any, bool] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def invoke(self, f: str, value: Any, *, final: bool = False) -> None:
        assert self._open is None, "a process does one thing at a time"
        self._open = f, value, final
        self._write("invoke", f, value, None, final=final)

    def ok(self, value: Any) -> None:
        self._complete("ok", value, None)

    def fail(self, error: str) -> None:
        """It certainly had no effect."""
        self._complete("fail", None, error)

    def info(self, error: str, value: Any = None) -> None:
        """Whether it had an effect is unknown. `value` is what is known of it, else what was asked."""
        self._complete("info", value, error)

    def next_life(self) -> None:
        """The client is gone; what takes its place is another process."""
        self.process += self._stride

    def _complete(self, kind: EventType, value: Any, error: str | None) -> None:
        assert self._open is not None, "only what was invoked completes"
        f, asked, final = self._open
        self._open = None
        self._write(kind, f, asked if value is None else value, error, final=final)

    def _write(self, kind: EventType, f: str, value: Any, error: str | None, *, final: bool) -> None:
        time_ns = clock.monotonic_ns() - self._start_ns
        line = Operation(0, kind, self.process, time_ns, f, value, error, final)
        self._file.write(_ENCODER.encode(line) + b"\n")


def merged(paths: Iterable[Path], *, others: Sequence[Operation] = ()) -> list[Operation]:
    """The events of all files and `others` in the order of their times, numbered. Raises ClusterError for a line that
    is damaged in the middle of a file; the last one of a killed process may be cut off."""
    events = list(others)
    decode = msgspec.json.Decoder(Operation).decode
    for path in paths:
        data = path.read_bytes()
        for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), 1):
            try:
                events.append(decode(line))
            except msgspec.MsgspecError as error:
                raise ClusterError(f"{path.name}, line {number} is no event of a history: {error}") from error
    # Stable: an invocation stays before a completion of the same nanosecond.
    events.sort(key=lambda event: event.time)
    return [msgspec.structs.replace(event, index=index) for index, event in enumerate(events)]
