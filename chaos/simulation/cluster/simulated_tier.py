"""The tier of a simulated cluster: objects of memory that all machines share and no crash takes, with faults.

What is in the tier is judged by its objects alone, read by plain readers (`chaos/checkers/log_files.py`): copies of one
partition agree, and what no disk has any more is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random

from msgspec import Struct

from ....protocol.batches import Buffer
from ....storage.tiers.rules.tier_store import MissingObjectError, TierError
from ...checkers.log_files import PlainBatch, PlainLog, read_log

_LOG = ".log"
_INDEXES = ".indexes"


class _Copy(Struct, frozen=True):
    """A segment's objects: the key without its suffix, and what its log holds."""

    name: str
    log: PlainLog


class SimulatedTier:
    """A `TierStore`. A call happens all at once, at the instant that the loop draws for the job that makes it."""

    def __init__(self, random: Random) -> None:
        self.violations: list[str] = []
        self.put_count = 0
        """Logs of segments."""
        self.delete_count = 0
        self.is_out = False
        """Every call fails until this is False again."""
        self.failures_left = 0
        """So many calls fail, some of them when they have done what was asked."""
        self.random = random
        self._objects: dict[str, bytes] = {}
        # By topic and partition, and by the name of the segment.
        self._copies: dict[tuple[str, int], dict[str, _Copy]] = {}

    # The port.

    def put(self, key: str, parts: bytes | Iterable[Buffer]) -> None:
        is_told = self._begin(key)
        data = bytes(parts) if isinstance(parts, bytes) else b"".join(bytes(part) for part in parts)
        known = self._objects.get(key)
        self._objects[key] = data
        if key.endswith(_LOG):
            # A copy that is begun again may have other indexes.
            if known is not None and known != data:
                self.violations.append(f"the tier's object {key} is written twice, with two contents")
            self._note_copy(key.removesuffix(_LOG), data)
        self._end(key, is_told=is_told)

    def get_range(self, key: str, start: int, size: int) -> bytes:
        self._end(key, is_told=self._begin(key))
        if key not in self._objects:
            raise MissingObjectError(f"{key} is not there")
        return self._objects[key][start : start + size]

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            is_told = self._begin(key)
            if self._objects.pop(key, None) is not None and key.endswith(_LOG):
                self.delete_count += 1
                self._copies[_place_of(key)].pop(key.removesuffix(_LOG), None)
            self._end(key, is_told=is_told)

    def keys(self, prefix: str) -> Iterator[str]:
        self._end(prefix, is_told=self._begin(prefix))
        return iter([key for key in self._objects if key.startswith(prefix)])

    def _begin(self, key: str) -> bool:
        """Whether the caller will be told that it was done."""
        if self.is_out:
            raise TierError(f"the tier is out: {key}")
        if not self.failures_left:
            return True
        self.failures_left -= 1
        if self.random.random() < 0.5:
            raise TierError(f"the tier does not do it: {key}")
        return False

    def _end(self, key: str, *, is_told: bool) -> None:
        if not is_told:
            raise TierError(f"the tier does not say that it did it: {key}")

    # What is there.

    def _note_copy(self, name: str, data: bytes) -> None:
        base = int(name.rpartition("/")[2][:20])
        log = read_log({base: data})
        if log.stopped is not None or not log.batches:
            self.violations.append(f"the tier's copy {name} is no log: {log.stopped or 'it is empty'}")
        place = _place_of(name)
        ours = {batch.base_offset: batch for batch in log.batches}
        copies = self._copies.setdefault(place, {})
        for other in copies.values():
            if other.name == name or other.log.end_offset <= base or (other.log.start_offset or 0) >= log.end_offset:
                continue
            if any(ours.get(batch.base_offset, batch) != batch for batch in other.log.batches):
                self.violations.append(f"the tier's copies {name} and {other.name} differ")
        if name not in copies:
            self.put_count += 1
        copies[name] = _Copy(name, log)

    def batches_of(self, topic: str, index: int) -> Mapping[int, PlainBatch]:
        """By base offset, of all copies that are whole."""
        return {
            batch.base_offset: batch
            for one in self._copies.get((topic, index), {}).values()
            if f"{one.name}{_INDEXES}" in self._objects
            for batch in one.log.batches
        }

    def joined(self, local: Mapping[int, bytes], topic: str, index: int) -> PlainLog:
        """A replica's log from where the tier has all up to the first of its `local` segments, by base offset."""
        log = read_log(local)
        first = log.start_offset if log.start_offset is not None else min(local, default=0)
        by_end = {batch.end_offset: batch for batch in self.batches_of(topic, index).values()}
        before: list[PlainBatch] = []
        while (batch := by_end.get(first)) is not None:
            before.append(batch)
            first = batch.base_offset
        return PlainLog((*reversed(before), *log.batches), log.stopped)


def _place_of(key: str) -> tuple[str, int]:
    """The topic and the partition of `<topic>/<topic id>/<partition>/<segment>`."""
    topic, _, index, _ = key.split("/")
    return topic, int(index)
