"""What is new in a folder, so that a start that failed can take it away again."""

import shutil
from pathlib import Path


class NewFiles:
    """Compares with how things were when it was made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        self._outermost = missing[-1] if missing else None
        self._before = frozenset(folder.iterdir()) if not missing and folder.is_dir() else frozenset()

    def remove(self) -> None:
        """What cannot be removed stays."""
        if self._outermost is not None:
            shutil.rmtree(self._outermost, ignore_errors=True)
            return
        if not self._folder.is_dir():
            return
        for path in self._folder.iterdir():
            if path in self._before:
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
