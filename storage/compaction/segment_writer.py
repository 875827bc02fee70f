"""What is left of a group of segments, on its way into one new segment beside them, `….cleaned`."""

from collections.abc import Sequence
from typing import Final, Protocol

from ...protocol.batches import BatchHeader, Buffer
from ..disk.files import Files
from ..disk.rules.throttle import Throttle
from ..log.rules.aborted_transaction import AbortedTransaction
from ..log.rules.config import LogConfig
from ..log.rules.file_names import CLEANED, INDEX_SUFFIXES, LOG
from ..log.segment import Segment

_WRITTEN_AT_ONCE_BYTES: Final = 1024 * 1024


class CleanedWriter(Protocol):
    """Takes in the batches of one new segment, in offset order."""

    def add(self, data: Buffer, header: BatchHeader) -> None: ...

    def add_aborted(self, transactions: Sequence[AbortedTransaction]) -> None: ...

    def finish(self, modified_ms: int) -> int:
        """How many bytes of log there are. `modified_ms` is for retention by time."""

    def abandon(self) -> None: ...


class MeasuringWriter:
    """Writes nothing: for what a compaction would do."""

    def __init__(self) -> None:
        self._size_bytes = 0

    def add(self, data: Buffer, header: BatchHeader) -> None:  # noqa: ARG002 - the other form's
        self._size_bytes += header.size_bytes

    def add_aborted(self, transactions: Sequence[AbortedTransaction]) -> None: ...

    def finish(self, modified_ms: int) -> int:  # noqa: ARG002 - the other form's
        return self._size_bytes

    def abandon(self) -> None: ...


class SegmentWriter:
    def __init__(
        self, files: Files, directory: str, base_offset: int, *, config: LogConfig, throttle: Throttle
    ) -> None:
        """What a pass that did not end has left of such a segment goes. OSError."""
        self._files = files
        self._throttle = throttle
        self._segment = Segment(files, directory, base_offset, config=config, created_ms=0, name_suffix=CLEANED)
        for suffix in (LOG, *INDEX_SUFFIXES):
            path = self._segment.path(suffix)
            if files.exists(path):
                files.remove(path)
        self._data: list[Buffer] = []
        self._data_bytes = 0
        self._headers: list[BatchHeader] = []

    def add(self, data: Buffer, header: BatchHeader) -> None:
        self._data.append(data)
        self._headers.append(header)
        self._data_bytes += header.size_bytes
        if self._data_bytes >= _WRITTEN_AT_ONCE_BYTES:
            self._write()

    def add_aborted(self, transactions: Sequence[AbortedTransaction]) -> None:
        for transaction in transactions:
            self._segment.note_aborted(transaction)

    def finish(self, modified_ms: int) -> int:
        """Write and sync all."""
        self._write()
        segment = self._segment
        # Also when it is empty: the file says that the segment begins there.
        file = segment.file
        segment.write_indexes()
        for one in (file, *segment.index_files()):
            one.sync()
        segment.close()
        self._files.set_modified_ms(segment.path(LOG), modified_ms)
        return segment.size_bytes

    def abandon(self) -> None:
        self._segment.close()

    def _write(self) -> None:
        if self._data:
            self._segment.append_run(b"".join(self._data), self._headers)
            self._throttle.take(self._data_bytes)
            self._data, self._headers, self._data_bytes = [], [], 0
