"""The aborted transactions whose markers lie in a segment, in the `.txnindex` file (KIP-98). Kafka: `TransactionIndex`.

    offset  size  field
    0       2     version, 0
    2       8     producer id
    10      8     first offset of the transaction
    18      8     last offset: that of its abort marker
    26      8     last stable offset when the marker was written

Last offsets rise from entry to entry. The file exists only when there is an entry.

The newest entries wait in memory, as those of `index_file.py` do: what is in the log cannot fail to be indexed. Losing
them is harmless, because recovery makes the index of the active segment anew.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final

from ..disk.files import File, Files
from .index_file import CorruptIndex
from .rules.aborted_transaction import AbortedTransaction

ENTRY: Final = Struct(">hqqqq")
_VERSION: Final = 0
_MAX_PENDING_ENTRIES: Final = 64


class TransactionIndex:
    __slots__ = ("_entries", "_file", "_files", "_path", "_pending")

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._file: File | None = None
        # Loaded when first asked for: most segments have none.
        self._entries: list[AbortedTransaction] | None = None
        # The last of all entries, which are not in the file yet.
        self._pending: list[AbortedTransaction] = []

    @property
    def entries(self) -> list[AbortedTransaction]:
        if self._entries is None:
            self._entries = self._load() + self._pending
        return self._entries

    def check(self) -> None:
        """Raises CorruptIndex when the file is no transaction index."""
        _ = self.entries

    def append(self, transaction: AbortedTransaction) -> None:
        """Never touches the file."""
        known = self._pending if self._entries is None else self._entries
        assert not known or known[-1].last_offset < transaction.last_offset, "markers are appended in offset order"
        self._pending.append(transaction)
        if self._entries is not None:
            self._entries.append(transaction)

    def replace(self, transactions: Sequence[AbortedTransaction]) -> None:
        """These are all, in offset order. OSError leaves what there was."""
        data = b"".join(ENTRY.pack(_VERSION, *transaction) for transaction in transactions)
        self.close()
        self._files.write_atomically(self._path, data)
        self._pending = []
        self._entries = list(transactions)

    @property
    def is_write_due(self) -> bool:
        return len(self._pending) >= _MAX_PENDING_ENTRIES

    def write_pending(self) -> None:
        if self._pending:
            self._open().append([ENTRY.pack(_VERSION, *transaction) for transaction in self._pending])
            self._pending.clear()

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
        written = len(entries) - len(self._pending)
        kept = sum(1 for entry in entries if entry.last_offset < offset)
        if kept < written:
            self._open().truncate(kept * ENTRY.size)
        del entries[kept:]
        del self._pending[max(kept - written, 0) :]

    def file_if_any(self) -> File | None:
        """With all entries in it. Also one that was cut down to nothing: were a loss of power to take that back,
        transactions that are none would be left out of what consumers read."""
        self.write_pending()
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
        return decode_transactions(self._files.read(self._path), self._path)


def decode_transactions(data: bytes, path: str) -> list[AbortedTransaction]:
    """What such a file has. CorruptIndex."""
    if len(data) % ENTRY.size:
        raise CorruptIndex(f"{path} has {len(data)} bytes, which is no multiple of {ENTRY.size}")
    entries: list[AbortedTransaction] = []
    for version, *fields in ENTRY.iter_unpack(data):
        entry = AbortedTransaction(*fields)
        if version != _VERSION or (entries and entry.last_offset <= entries[-1].last_offset):
            raise CorruptIndex(f"{path} has an impossible entry {entry} of version {version}")
        entries.append(entry)
    return entries
