"""How much of each file a node has synced, kept beside its data, so that the rest can be dropped after it was killed.

A process that is killed loses nothing that it has written: the page cache keeps it. A machine that loses power loses
what was not synced. `SyncedEnds` notes in the node what is safe, `drop_unsynced` does afterwards what the loss of power
would have done: files are cut to what was synced of them. Names in folders and truncations count as safe.

One line for each event, of which a half written last one does not count. Where a process may be killed between an event
and its line, what is noted leaves more, never less, than a disk that keeps its word.

    synced SIZE PATH | cut SIZE PATH | gone PATH | whole PATH | moving SOURCE<tab>TARGET
"""

import os
from pathlib import Path
from typing import Final

_SYNCED: Final = "synced"
_CUT: Final = "cut"
_GONE: Final = "gone"
_WHOLE: Final = "whole"
_MOVING: Final = "moving"
_ALL: Final = 2**62


class SyncedEnds:
    """In the node. Calls come from the loop and from the executor's threads: a line is one write."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def note_synced(self, path: str, size: int) -> None:
        """So much of the file will be there."""
        self._write(f"{_SYNCED} {size} {path}")

    def note_cut(self, path: str, size: int) -> None:
        """What is written behind this from now on is new."""
        self._write(f"{_CUT} {size} {path}")

    def note_gone(self, path: str) -> None:
        """A file, or a folder with all that is in it."""
        self._write(f"{_GONE} {path}")

    def note_whole(self, path: str) -> None:
        """Before it is written in one step: it has the old content or the new, all of it."""
        self._write(f"{_WHOLE} {path}")

    def note_moving(self, source: str, target: str) -> None:
        """Before a file, or a folder with all that is in it, is renamed."""
        self._write(f"{_MOVING} {source}\t{target}")

    def _write(self, line: str) -> None:
        os.write(self._descriptor, f"{line}\n".encode())


def drop_unsynced(notes: Path, data: Path) -> dict[Path, int]:
    """Cut all files below `data`, whose node does not run, to what it synced; how many bytes that dropped of which."""
    if not data.exists():
        # The disk was emptied, and the node was not started since.
        return {}
    ends = read_ends(notes.read_text())
    dropped = {}
    for file in data.rglob("*"):
        if file.is_file():
            size = file.stat().st_size
            kept = min(size, ends.get(str(file), 0))
            if kept < size:
                os.truncate(file, kept)
                dropped[file] = size - kept
    return dropped


def read_ends(text: str) -> dict[str, int]:
    """By path, how much of a file is safe at least; nothing of those that are not named."""
    ends: dict[str, int] = {}
    for line in text[: text.rfind("\n") + 1].splitlines():
        kind, _, rest = line.partition(" ")
        match kind:
            case "synced" | "cut":
                size, _, path = rest.partition(" ")
                # A sync that began earlier may end later, and says less.
                known = ends.get(path, 0)
                ends[path] = max(known, int(size)) if kind == _SYNCED else min(known, int(size))
            case "gone":
                for path in _below(ends, rest):
                    del ends[path]
            case "whole":
                ends[rest] = _ALL
            case "moving":
                source, _, target = rest.partition("\t")
                for path in _below(ends, source):
                    moved = target + path.removeprefix(source)
                    ends[moved] = max(ends[path], ends.get(moved, 0))
    return ends


def _below(ends: dict[str, int], path: str) -> list[str]:
    return [one for one in ends if one == path or one.startswith(f"{path}/")]
