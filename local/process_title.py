"""What `ps` shows of a process that was forked, which would be the command line of the one it was forked from."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

# Fields of /proc/self/stat behind the command, of which the state is the first (proc(5): arg_start, arg_end).
_ARGUMENTS_START: Final = 45
_ARGUMENTS_END: Final = 46


def set_command_line(arguments: Sequence[str]) -> None:
    """Cut where there is not enough room. Other systems than Linux keep what they show."""
    # For people to read: whatever goes wrong, the process does the same.
    with suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(fields[_ARGUMENTS_START]), int(fields[_ARGUMENTS_END])
        if 0 < start < end:
            line = b"\0".join(argument.encode() for argument in arguments)[: end - start - 1]
            ctypes.memmove(start, line.ljust(end - start, b"\0"), end - start)
