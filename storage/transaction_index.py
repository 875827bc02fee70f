"""The aborted transactions whose markers lie in a segment, in the `.txnindex` file (KIP-98).

    offset  size  field
    0       2     version, 0
    2       8     producer id
    10      8     first offset of the transaction
    18      8     last offset: that of its abort marker
    26      8     last stable offset when the marker was written

Last offsets rise from entry to entry. The file exists only when there is an entry.
"""

from struct import Struct
from typing import Final, NamedTuple

from .files import File, Files
from .index_file import CorruptIndex

_ENTRY: Final = Struct(">hqqqq")
_VERSION: Final = 0


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    __slots__ = ("_entries", "_file", "_files", "_path")

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._file: File | None = None
        # Loaded when first asked for: most segments have none.
        self._entries: list[AbortedTransaction] | None = None

    @property
    def entries(self) -> list[AbortedTransaction]:
        if self._entries is None:
            self._entries = self._load()
        return self._entries

    def append(self, transaction: AbortedTransaction) -> None:
        entries = self.entries
        assert not entries or entries[-1].last_offset < transaction.last_offset, "markers are appended in offset order"
        self._open().append((_ENTRY.pack(_VERSION, *transaction),))
        entries.append(transaction)

    def collect(self, start_offset: int, end_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """Those that overlap [start_offset, end_offset), and whether later segments cannot hold any more of them."""
        found = []
        for transaction in self.entries:
            if transaction.last_offset >= start_offset and transaction.first_offset < end_offset:
                found.append(transaction)
            if transaction.last_stable_offset >= end_offset:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions whose marker is at `offset` or above."""
        entries = self.entries
        kept = sum(1 for entry in entries if entry.last_offset < offset)
        if kept < len(entries):
            self._open().truncate(kept * _ENTRY.size)
            del entries[kept:]

    def file_if_any(self) -> File | None:
        """Also one that was cut down to nothing: were a loss of power to take that back, transactions that are none
        would be left out of what consumers read."""
        return self._open() if self._file is not None or self._files.exists(self._path) else None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def moved_to(self, path: str) -> None:
        self.close()
        self._path = path

    def _open(self) -> File:
        if self._file is None:
            self._file = self._files.open(self._path, create=True)
        return self._file

    def _load(self) -> list[AbortedTransaction]:
        if not self._files.exists(self._path):
            return []
        data = self._files.read(self._path)
        if len(data) % _ENTRY.size:
            raise CorruptIndex(f"{self._path} has {len(data)} bytes, which is no multiple of {_ENTRY.size}")
        entries: list[AbortedTransaction] = []
        for version, *fields in _ENTRY.iter_unpack(data):
            entry = AbortedTransaction(*fields)
            if version != _VERSION or (entries and entry.last_offset <= entries[-1].last_offset):
                raise CorruptIndex(f"{self._path} has an impossible entry {entry} of version {version}")
            entries.append(entry)
        return entries
