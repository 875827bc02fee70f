"""A file that a disk has changed behind the back of the node that wrote it, and when that is made good."""

from __future__ import annotations

from msgspec import Struct

from ....storage.disk.memory_files import MemoryFiles
from ....storage.log.rules.file_names import LOG, PRODUCER_SNAPSHOT


class DamagedFile(Struct, frozen=True, kw_only=True):
    path: str
    written: bytes
    """As the node wrote it."""
    found: bytes | None
    """As the disk has it; None: it is gone."""
    good_from_start: int | None = None
    """Of a file that only a start reads: the number of the start that sees it. None: the file itself tells."""

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def is_of_batches(self) -> bool:
        return self.path.endswith(LOG)

    def is_made_good(self, files: MemoryFiles) -> bool:
        """Whether the file is another one by now, its segment is no more, or nothing lacks it."""
        now = files.look(self.path)
        if self.found is not None:
            return now is None or now != self.found
        if now is not None or self.path.endswith(PRODUCER_SNAPSHOT):
            return True
        logs = [name for name in files.look_into(self.folder) if name.endswith(LOG)]
        name = self.path.rpartition("/")[2]
        if self.is_of_batches:
            # What is before it may be deleted, what is behind it cut off.
            return not logs or not logs[0] < name < logs[-1]
        return f"{name.rpartition('.')[0]}{LOG}" not in logs
