"""A disk that fails as ordered: `storage.files.Files` around the real one, and what each call counts as.

The promises of `Files` hold: a call that fails has changed nothing, but for a sync, after which nothing is known.
"""

from collections.abc import Sequence
from threading import Lock as Mutex
from weakref import WeakValueDictionary

from ...protocol.batches import Buffer
from ...storage.disk.files import File, Files, Lock
from ...storage.disk.rules.disk_errors import failed_read, failed_sync
from .node_faults import OrderReader
from .synced_ends import SyncedEnds


class FaultyFiles:
    """`disk`, as far as `orders` lets it work. `synced` is told what a loss of power would leave."""

    def __init__(self, disk: Files, orders: OrderReader, synced: SyncedEnds) -> None:
        self._disk = disk
        self._orders = orders
        self._synced = synced
        self._mutex = Mutex()
        # By the id of the file inside, which lives as long as the one around it.
        self._known: WeakValueDictionary[int, FaultyFile] = WeakValueDictionary()

    def open(self, path: str, *, create: bool = False) -> File:
        if create and not self._disk.exists(path):
            self._orders.suffer("create", path)
        inner = self._disk.open(path, create=create)
        with self._mutex:
            file = self._known.get(id(inner))
            if file is None:
                file = self._known[id(inner)] = FaultyFile(inner, self._orders, self._synced)
            return file

    def exists(self, path: str) -> bool:
        return self._disk.exists(path)

    def is_directory(self, path: str) -> bool:
        return self._disk.is_directory(path)

    def list_directory(self, path: str) -> list[str]:
        self._read(path)
        return self._disk.list_directory(path)

    def make_directories(self, path: str) -> None:
        if not self._disk.is_directory(path):
            self._orders.suffer("create", path)
        self._disk.make_directories(path)

    def make_directory(self, path: str) -> None:
        self._orders.suffer("create", path)
        self._disk.make_directory(path)

    def allocate(self, path: str, size: int) -> None:
        self._orders.suffer("create", path)
        self._disk.allocate(path, size)

    def remove(self, path: str) -> None:
        self._orders.suffer("remove", path)
        self._disk.remove(path)
        self._synced.note_gone(path)

    def remove_tree(self, path: str) -> None:
        self._orders.suffer("remove", path)
        self._disk.remove_tree(path)
        self._synced.note_gone(path)

    def rename(self, source: str, target: str) -> None:
        self._orders.suffer("rename", source)
        self._synced.note_moving(source, target)
        self._disk.rename(source, target)

    def sync_directory(self, path: str) -> None:
        self._sync(path)
        self._disk.sync_directory(path)

    def size(self, path: str) -> int:
        return self._disk.size(path)

    def read(self, path: str) -> bytes:
        self._read(path)
        return self._disk.read(path)

    def write(self, path: str, data: bytes) -> None:
        self._orders.suffer("write", path)
        self._disk.write(path, data)
        self._synced.note_gone(path)

    def write_atomically(self, path: str, data: bytes) -> None:
        self._orders.suffer("write", path)
        self._sync(path)
        self._orders.suffer("rename", path)
        self._synced.note_whole(path)
        self._disk.write_atomically(path, data)

    def lock(self, path: str) -> Lock:
        return self._disk.lock(path)

    def free_bytes(self, path: str) -> int:
        return self._disk.free_bytes(path)

    def total_bytes(self, path: str) -> int:
        return self._disk.total_bytes(path)

    def modified_ms(self, path: str) -> int:
        return self._disk.modified_ms(path)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._disk.set_modified_ms(path, modified_ms)

    def _sync(self, path: str) -> None:
        try:
            self._orders.suffer("sync", path)
        except OSError as error:
            raise failed_sync(path, error) from error

    def _read(self, path: str) -> None:
        try:
            self._orders.suffer("read", path)
        except OSError as error:
            raise failed_read(path, error) from error


class FaultyFile:
    """One file of `FaultyFiles`."""

    __slots__ = ("__weakref__", "_file", "_orders", "_synced", "is_suspect")

    def __init__(self, file: File, orders: OrderReader, synced: SyncedEnds) -> None:
        self._file = file
        self._orders = orders
        self._synced = synced
        self.is_suspect = False

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def size(self) -> int:
        return self._file.size

    def append(self, parts: Sequence[Buffer]) -> None:
        self._orders.suffer("write", self.path)
        self._file.append(parts)

    def read_at(self, position: int, size: int) -> bytes:
        self._read()
        return self._file.read_at(position, size)

    def send_nowait(self, descriptor: int, position: int, size: int) -> int | None:  # noqa: ARG002 - as every file
        # Read instead, where faults are.
        return None

    def read_at_nowait(self, position: int, size: int) -> bytes | bytearray | None:
        self._read()
        return self._file.read_at_nowait(position, size)

    def write_at(self, position: int, data: Buffer) -> None:
        self._orders.suffer("write", self.path)
        self._file.write_at(position, data)

    def truncate(self, size: int) -> None:
        self._orders.suffer("truncate", self.path)
        self._file.truncate(size)
        self._synced.note_cut(self.path, size)

    def sync(self) -> None:
        try:
            self._orders.suffer("sync", self.path)
        except OSError as error:
            raise failed_sync(self.path, error) from error
        # What is appended meanwhile may be missing.
        size = self.size
        self._file.sync()
        self._synced.note_synced(self.path, size)

    def close(self) -> None:
        self._file.close()

    def _read(self) -> None:
        try:
            self._orders.suffer("read", self.path)
        except OSError as error:
            raise failed_read(self.path, error) from error
