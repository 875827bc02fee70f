"""Files and folders of `memory_files`, and what a loss of power leaves of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from errno import EIO, ENOSPC, ESTALE, errorcode
from random import Random
from typing import Final, Literal, Protocol, TypeAlias

from ...protocol.batches import Buffer
from .rules.disk_errors import failed_read, failed_sync

Operation: TypeAlias = Literal[
    "create",
    "list",
    "lock",
    "make_directory",
    "open",
    "read",
    "remove",
    "rename",
    "sync",
    "sync_directory",
    "truncate",
    "write",
]

PROCESS_GONE: Final = ESTALE
"""The error of calls that are not made, because the process is gone that would have made them."""

_SECTOR_BYTES: Final = 512


class Disk(Protocol):
    """What a file asks of the disk it is on."""

    def note(self, operation: Operation, path: str) -> None:
        """Count the call, and raise OSError when it is to fail."""

    def check_held(self, path: str) -> None:
        """Raises ClosedError when nothing changes at `path` any more."""

    def room_for(self, size: int) -> int:
        """How many of `size` more bytes fit."""

    def now_ms(self) -> int: ...


class _State(Enum):
    UNSYNCED = auto()
    SYNCED = auto()
    # A sync of it failed: what the disk has of it stays unknown.
    UNCERTAIN = auto()


@dataclass(slots=True, kw_only=True)
class _Change:
    """What turned bytes of a file, `before` at `position`, into `after`. Sizes are those of the whole file."""

    position: int
    before: bytes
    after: bytes
    size_before: int
    size_after: int
    state: _State = _State.UNSYNCED

    @property
    def is_truncation(self) -> bool:
        return not self.after


class MemoryFile:
    """A file of `MemoryFiles`: the file itself and the handle of it, until the process dies."""

    __slots__ = (
        "_changes",
        "_disk",
        "data",
        "is_dead",
        "is_suspect",
        "last_path",
        "modified_ms",
        "name",
        "parent",
        "size",
    )

    def __init__(self, disk: Disk, parent: "Directory", name: str, data: bytes = b"") -> None:
        self._disk = disk
        self.parent: Directory | None = parent
        self.name = name
        self.last_path = f"{parent.path}/{name}"
        self.data = bytearray(data)
        # What the process knows; an append that could be neither finished nor undone leaves more.
        self.size = len(data)
        self.modified_ms = disk.now_ms()
        self.is_dead = False
        self.is_suspect = False
        # Since the last state of the file that is known to be on the disk.
        self._changes: list[_Change] = []

    @property
    def path(self) -> str:
        return self.last_path if self.parent is None else f"{self.parent.path}/{self.name}"

    def append(self, parts: Sequence[Buffer]) -> None:
        data = b"".join(parts)
        position = self.size
        try:
            self._write(position, data)
        except OSError:
            try:
                self.truncate(position)
            except OSError as error:
                raise OSError(EIO, f"{self.path}: a failed append could not be undone: {error}") from error
            raise
        self.size = position + len(data)

    def read_at(self, position: int, size: int) -> bytes:
        try:
            self._begin("read")
        except OSError as error:
            raise failed_read(self.path, error) from error
        return bytes(self.data[position : min(position + size, self.size)])

    def send_nowait(self, descriptor: int, position: int, size: int) -> int | None:  # noqa: ARG002 - as every file
        return None

    def read_at_nowait(self, position: int, size: int) -> bytes | bytearray | None:
        return self.read_at(position, size)

    def write_at(self, position: int, data: Buffer) -> None:
        self._write(position, bytes(data))
        self.size = max(self.size, position + len(data))

    def truncate(self, size: int) -> None:
        self._begin("truncate")
        before = bytes(self.data[size:])
        if size > len(self.data):
            self._change(len(self.data), bytes(size - len(self.data)))
        elif before:
            self._changes.append(
                _Change(position=size, before=before, after=b"", size_before=len(self.data), size_after=size)
            )
            del self.data[size:]
        self.size = size

    def sync(self) -> None:
        try:
            self._begin("sync")
        except OSError as error:
            if error.errno != PROCESS_GONE:
                self._mark_unsynced(_State.UNCERTAIN)
            raise failed_sync(self.path, error) from error
        self._mark_unsynced(_State.SYNCED)
        for change in self._changes:
            # The size of a file is journaled by the file system, so this sync made it last.
            if change.is_truncation:
                change.state = _State.SYNCED
        if all(change.state is _State.SYNCED for change in self._changes):
            self._changes.clear()

    def is_safe(self, size: int) -> bool:
        """Whether no loss of power changes the first `size` bytes, but for those whose sync failed."""
        return not any(change.state is _State.UNSYNCED and change.position < size for change in self._changes)

    def damage(self, data: bytes) -> None:
        """The disk has this now, and keeps it. A process that has the file open knows nothing of it."""
        self.data[:] = data
        self._changes.clear()

    def close(self) -> None:
        """There is no descriptor to give back."""

    def renewed(self, random: Random | None, parent: "Directory") -> "MemoryFile":
        """The file as a new process finds it, `random` deciding what a loss of power left."""
        self.is_dead = True
        found = MemoryFile(self._disk, parent, self.name, bytes(self.data))
        found.modified_ms = self.modified_ms
        if random is None:
            found._changes = self._changes
        else:
            found.data = self._after_power_loss(random)
            found.size = len(found.data)
        return found

    def _after_power_loss(self, random: Random) -> bytearray:
        data = bytearray(self.data)
        for change in reversed(self._changes):
            data[change.position : change.position + len(change.after)] = change.before
            assert len(data) == change.size_before, "changes are undone in the opposite order"
        lossy = [change for change in self._changes if change.state is not _State.SYNCED]
        # In what order the disk was busy is unknown, but mostly it went from front to back.
        is_in_order = random.random() < 0.6
        kept_count = random.randint(0, len(lossy))
        for number, change in enumerate(self._changes):
            if change.state is _State.SYNCED:
                _apply(data, change, change.after)
            elif is_in_order:
                position = sum(1 for earlier in self._changes[:number] if earlier.state is not _State.SYNCED)
                if position < kept_count:
                    _apply(data, change, change.after)
                elif position == kept_count:
                    # Half of the time it is missing as a whole: the file ends with the write before, and looks whole.
                    size = len(change.after)
                    _apply(data, change, change.after[: max(0, random.randint(-size, size))])
            elif change.is_truncation:
                if random.random() < 0.5:
                    _apply(data, change, b"")
            else:
                _scatter(data, change, random)
        return data

    def _begin(self, operation: Operation) -> None:
        if self.is_dead:
            raise OSError(PROCESS_GONE, f"{self.last_path}: the process that opened it is gone")
        self._disk.note(operation, self.path)

    def _write(self, position: int, data: bytes) -> None:
        if not self.is_dead:
            self._disk.check_held(self.path)
        try:
            self._begin("write")
        except OSError:
            if not self.is_dead:
                self._change(position, data[: len(data) // 2])
            raise
        growth = max(0, position + len(data) - len(self.data))
        room = self._disk.room_for(growth)
        self._change(position, data[: len(data) - growth + room])
        if room < growth:
            raise disk_error(ENOSPC, self.path)

    def _change(self, position: int, after: bytes) -> None:
        if not after:
            return
        size_before = len(self.data)
        if position > size_before:
            after = bytes(position - size_before) + after
            position = size_before
        before = bytes(self.data[position : position + len(after)])
        self.data[position : position + len(after)] = after
        self.modified_ms = self._disk.now_ms()
        self._changes.append(
            _Change(position=position, before=before, after=after, size_before=size_before, size_after=len(self.data))
        )

    def _mark_unsynced(self, state: _State) -> None:
        for change in self._changes:
            if change.state is _State.UNSYNCED:
                change.state = state


class Directory:
    """A folder: what it has, and how to undo what was not synced, oldest first."""

    __slots__ = ("entries", "name", "parent", "unsynced")

    def __init__(self, parent: "Directory | None", name: str) -> None:
        self.parent = parent
        self.name = name
        self.entries: dict[str, Node] = {}
        # Each change is a few names with what they stood for before and after: a rename changes two at once.
        self.unsynced: list[tuple[tuple[str, Node | None, Node | None], ...]] = []

    @property
    def path(self) -> str:
        return "" if self.parent is None else f"{self.parent.path}/{self.name}"

    def change(self, name: str, node: "Node | None") -> None:
        """Put `node` at `name`, or remove what is there."""
        before = self.entries.get(name)
        self.unsynced.append(((name, before, node),))
        self._put(name, node)

    def rename(self, node: "Node", name: str) -> None:
        if node.name == name:
            return
        self.unsynced.append(((node.name, node, None), (name, self.entries.get(name), node)))
        del self.entries[node.name]
        self._put(name, node)

    def keeps(self, node: "Node", *, is_renamed: bool = False) -> bool:
        """Whether no loss of power takes the name of this entry, or of a folder that it lies in. With `is_renamed` this
        folder may have another name then, as its rename is not synced."""
        is_synced = all(
            found is not node for step in self.unsynced for _, before, after in step for found in (before, after)
        )
        if self.parent is None or not is_synced:
            return is_synced
        return self.parent.keeps(self) or (is_renamed and self.parent.has_always(self))

    def has_always(self, node: "Node") -> bool:
        """Whether a loss of power leaves this entry here, though perhaps under an earlier name."""
        return all(
            any(before is node for _, before, _ in step) == any(after is node for _, _, after in step)
            for step in self.unsynced
        )

    def used_bytes(self) -> int:
        return sum(
            node.used_bytes() if isinstance(node, Directory) else len(node.data) for node in self.entries.values()
        )

    def renewed(self, random: Random | None, parent: "Directory | None") -> "Directory":
        found = Directory(parent, self.name)
        entries = dict(self.entries)
        for node in self.entries.values():
            if isinstance(node, MemoryFile):
                node.is_dead = True
        unsynced = self.unsynced
        if random is not None:
            unsynced = []
            for step in reversed(self.unsynced):
                _set_all(entries, [(name, before) for name, before, _ in step])
            for step in self.unsynced[: random.randint(0, len(self.unsynced))]:
                _set_all(entries, [(name, after) for name, _, after in step])
        renewed: dict[int, Node] = {}
        for name in sorted(entries):
            node = entries[name]
            child = node.renewed(random, found)
            child.name = name
            found.entries[name] = renewed[id(node)] = child

        def renewed_or_none(node: Node | None) -> Node | None:
            """What was removed may still come back at a later loss of power."""
            if node is None:
                return None
            if id(node) not in renewed:
                renewed[id(node)] = node.renewed(None, found)
            return renewed[id(node)]

        for step in unsynced:
            found.unsynced.append(
                tuple((n, renewed_or_none(before), renewed_or_none(after)) for n, before, after in step)
            )
        return found

    def _put(self, name: str, node: "Node | None") -> None:
        replaced = self.entries.get(name)
        if isinstance(replaced, MemoryFile):
            replaced.last_path = replaced.path
            replaced.parent = None
        if node is None:
            del self.entries[name]
        else:
            self.entries[name] = node
            node.name = name


Node: TypeAlias = MemoryFile | Directory


def _set_all(entries: dict[str, Node], values: list[tuple[str, Node | None]]) -> None:
    for name, node in values:
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


def _apply(data: bytearray, change: _Change, after: bytes) -> None:
    """Put `after`, a beginning of what the change wrote, where it was written; bytes never written are zero."""
    if change.is_truncation:
        del data[change.size_after :]
        return
    if after:
        _pad(data, change.position)
        data[change.position : change.position + len(after)] = after


def _scatter(data: bytearray, change: _Change, random: Random) -> None:
    """Some sectors reached the disk, others did not; where the file grew over those, they read as zeros."""
    start = change.position
    end = start + len(change.after)
    while start < end:
        stop = min(end, (start // _SECTOR_BYTES + 1) * _SECTOR_BYTES)
        if random.random() < 0.5:
            _pad(data, start)
            data[start:stop] = change.after[start - change.position : stop - change.position]
        start = stop


def _pad(data: bytearray, size: int) -> None:
    if len(data) < size:
        data.extend(bytes(size - len(data)))


def disk_error(number: int, path: str) -> OSError:
    return OSError(number, errorcode.get(number, "unknown error"), path)
