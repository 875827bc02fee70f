"""What a start changes in a folder, so that one that failed can leave it as it was."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


class NewFiles:
    """Compares with how things were when it was made; of other files in the folder it knows nothing."""

    def __init__(self, folder: Path) -> None:
        self._missing_folders = [path for path in (folder, *folder.parents) if not path.exists()]
        self._paths: tuple[Path, ...] = ()
        self._former: dict[Path, bytes] = {}
        self._kept: frozenset[Path] = frozenset()

    def note(self, made: Iterable[Path], written: Iterable[Path]) -> None:
        """From now on files and folders may be `made`, which stay where they are there already, and small files be
        `written` anew."""
        written = tuple(written)
        self._paths = (*made, *written)
        self._former = {path: path.read_bytes() for path in written if path.is_file()}
        self._kept = frozenset(path for path in self._paths if path.exists())

    def remove(self) -> None:
        """And have what was written as it was. What cannot be removed stays."""
        for path in self._paths:
            with suppress(OSError):
                if path in self._former:
                    if not path.is_file() or path.read_bytes() != self._former[path]:
                        path.write_bytes(self._former[path])
                elif path not in self._kept:
                    if path.is_dir():
                        shutil.rmtree(path, ignore_errors=True)
                    else:
                        path.unlink(missing_ok=True)
        for folder in self._missing_folders:
            # In one that other programs use meanwhile, theirs stay.
            with suppress(OSError):
                folder.rmdir()
