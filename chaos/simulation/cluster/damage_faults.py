"""What disks do to files behind a node's back: bits that flip, files that are gone, empty, torn or half of zeros.

One file of one node at a time, and only what `docs/guarantees.md` promises to survive (the table "Damage", decision
23): others have all that this replica has, and stay until the file is made good by the scrubber, a start, or from the
leader. So runs with it have a scrubber (`cluster_settings.py`). Not hit are

- the first segment and the active one: the one looks like deleted by retention when it is gone, the other is not
  scrubbed yet;
- what no CRC covers, offsets and leader epochs of batches: until they are scrubbed they may be read;
- an index of aborted transactions but while the node is down, by what its start finds: until it is scrubbed a reader
  of committed records may be shown aborted ones;
- whole batches of a compacted log: those that are gone look like compacted away at the next start;
- numbers of a checkpoint that are other numbers then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from random import Random
from typing import Final

from ....protocol.batches import iterate_headers
from ....protocol.errors import CorruptData
from ....storage.directories.rules.checkpoints import CHECKPOINTS
from ....storage.log.rules.file_names import (
    LEADER_EPOCH_CHECKPOINT,
    LOG,
    OFFSET_INDEX,
    PARTITION_METADATA,
    PRODUCER_SNAPSHOT,
    TIME_INDEX,
    TRANSACTION_INDEX,
)
from ....storage.log.transaction_index import ENTRY
from .disk_faults import DiskLosses, FaultSchedule
from .machine import Machine

# Of closed segments: found by scrubbing, by reads, or by a start.
_CLOSED: Final = (LOG, LOG, OFFSET_INDEX, TIME_INDEX, PRODUCER_SNAPSHOT)
# Of a log, and of a log directory: read by a start only.
_OF_LOGS: Final = (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA)
_OF_DIRECTORIES: Final = CHECKPOINTS
_LOST: Final = ("gone", "empty", "torn", "zeros")
# How often the process of a node that runs is ended for it: it starts with the damage.
_DOWN_SHARE: Final = 0.4
_START_SHARE: Final = 0.4
_METADATA: Final = "__cluster_metadata-0"
# In a record batch.
_CRC_POSITION: Final = 17


class DamageFaults:
    def __init__(
        self,
        faults: FaultSchedule,
        losses: DiskLosses,
        machines: Mapping[int, Machine],
        *,
        random: Random,
        is_whole: Callable[[], bool],
        may_lose_data: Callable[[Machine], bool],
        is_compacted: Callable[[str], bool],
    ) -> None:
        """`is_compacted` says whether the policy of a topic is to compact it, even where the cleaner is off."""
        self._faults = faults
        self._losses = losses
        self._machines = machines
        self._random = random
        self._is_whole = is_whole
        self._may_lose_data = may_lose_data
        self._is_compacted = is_compacted
        self.actions: tuple[tuple[str, float, Callable[[], None]], ...] = (
            ("bit-flip", 0.15, self.flip_bit),
            ("lost-file", 0.25, self.lose_file),
        )
        """With the kind of each, and the chance at each step."""

    @property
    def damaged_node(self) -> int | None:
        """The node of which a file is damaged and not made good yet."""
        return next((node_id for node_id, machine in self._machines.items() if machine.damaged_file is not None), None)

    def flip_bit(self) -> None:
        """In a file of a closed segment."""
        machine = self._hit()
        if machine is not None:
            self._damage(machine, self._random.choice(_CLOSED), ("flipped",))

    def lose_file(self) -> None:
        """All of it or some."""
        machine = self._hit()
        if machine is None:
            return
        if machine.is_up or self._random.random() >= _START_SHARE:
            self._damage(machine, self._random.choice(_CLOSED), _LOST)
            return
        kind = self._random.choice((TRANSACTION_INDEX, *_OF_LOGS, *_OF_DIRECTORIES))
        self._damage(machine, kind, ("torn",) if kind == TRANSACTION_INDEX else _LOST)

    def _hit(self) -> Machine | None:
        """A node of which a file may be damaged now. One that is down already is the first choice; of the others some
        are ended for it."""
        machines, random = list(self._machines.values()), self._random
        losses = self._losses
        if losses.lost or losses.unreadable or losses.suspect or any(one.files.is_to_fail for one in machines):
            return None
        down = [one for one in machines if not one.is_up]
        if len(down) == 1 and self._may_lose_data(down[0]):
            return down[0]
        up = [one for one in machines if one.serves and not one.is_paused]
        machine = random.choice(up) if up else None
        if machine is None or not self._is_whole() or not self._may_lose_data(machine):
            return None
        if random.random() < _DOWN_SHARE:
            self._faults.note("kill", machine.node_id)
            machine.kill(has_power=True)
        return machine

    def _damage(self, machine: Machine, kind: str, ways: tuple[str, ...]) -> None:
        random = self._random
        paths = [path for path in _paths(machine, kind) if machine.files.look(path)]
        if not paths:
            return
        path, way = random.choice(paths), random.choice(ways)
        written = bytes(machine.files.look(path) or b"")
        found = self._flipped(path, written) if way == "flipped" else self._left(kind, way, written)
        if found == written or self._looks_compacted(path, written, found):
            return
        self._faults.note("bit flip" if way == "flipped" else "lost file", machine.node_id, path, way,
                          "open" if machine.is_up else "down")  # fmt: skip
        self._losses.lost.add(machine.node_id)
        machine.damage(path, found, is_read_at_start=kind not in _CLOSED)

    def _looks_compacted(self, path: str, written: bytes, found: bytes | None) -> bool:
        topic = path.rpartition("/")[0].rpartition("/")[2].rpartition("-")[0]
        if not path.endswith(LOG) or not self._is_compacted(topic):
            return False
        return found is None or len(found.rstrip(b"\0")) in {0, *(end for _, end in _batches(written))}

    def _flipped(self, path: str, written: bytes) -> bytes:
        random = self._random
        first, end = 0, len(written)
        if path.endswith(LOG):
            first, end = random.choice([(at + _CRC_POSITION, end) for at, end in _batches(written)] or [(0, end)])
        data = bytearray(written)
        data[random.randrange(first, end)] ^= 1 << random.randrange(8)
        return bytes(data)

    def _left(self, kind: str, way: str, written: bytes) -> bytes | None:
        if way == "gone":
            return None
        if way == "empty":
            return b""
        size = self._random.randrange(len(written))
        if kind == TRANSACTION_INDEX and size % ENTRY.size == 0:
            size += 1
        return written[:size] + (bytes(len(written) - size) if way == "zeros" else b"")


def _paths(machine: Machine, kind: str) -> Iterator[str]:
    files = machine.files
    for directory in machine.log_directories:
        if kind in _OF_DIRECTORIES:
            yield from (f"{directory}/{name}" for name in files.look_into(directory) if name == kind)
            continue
        for name in files.look_into(directory):
            folder = f"{directory}/{name}"
            if name == _METADATA or not name.rpartition("-")[2].isdigit():
                continue
            names = files.look_into(folder)
            if kind in _OF_LOGS:
                yield from (f"{folder}/{one}" for one in names if one == kind)
                continue
            bases = sorted(one.removesuffix(LOG) for one in names if one.endswith(LOG))
            yield from (f"{folder}/{base}{kind}" for base in bases[1:-1] if f"{base}{kind}" in names)


def _batches(data: bytes) -> Iterator[tuple[int, int]]:
    """Where each begins and ends. A loss of power may have torn a later one."""
    with suppress(CorruptData):
        for position, header in iterate_headers(data):
            yield position, position + header.size_bytes
