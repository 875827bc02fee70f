"""The segments of one log in offset order, the last of them active, and the files of those that were deleted.

Kafka: `LogSegments`.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from random import Random

from ..disk.files import File, Files
from .file_slice import NOTHING, FetchData, FileSlice
from .rules.aborted_transaction import AbortedTransaction
from .rules.config import LogConfig
from .rules.file_names import LOG, segment_file
from .segment import Segment


class Segments:
    __slots__ = (
        "_deleted_files",
        "_files",
        "_list",
        "_random",
        "_replaced",
        "_unusable",
        "active",
        "directory",
        "directory_change_count",
        "retired",
    )

    def __init__(self, files: Files, directory: str, random: Random | None) -> None:
        """Empty: before anything else `add` or `adopt` the first segment. `random` is for `segment.jitter.ms`."""
        self._files = files
        self._random = random
        self._list: list[Segment] = []
        self.directory = directory
        self.active: Segment
        # Paths of `….deleted` files and when they may be removed.
        self._deleted_files: list[tuple[str, int]] = []
        # Base offsets of files that were made, could not be used, and could not be removed.
        self._unusable: set[int] = set()
        # Segments whose place another one has, and whose files have their names yet.
        self._replaced: list[Segment] = []
        # Segments that became inactive, so that their indexes are complete, but not synced.
        self.retired: list[Segment] = []
        # That many times a name was made in the folder, or taken out, which a power loss could undo.
        self.directory_change_count = 0

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._list)

    def __getitem__(self, slot: int) -> Segment:
        return self._list[slot]

    def from_slot(self, slot: int) -> list[Segment]:
        return self._list[slot:]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._list)

    def slot_of(self, offset: int) -> int:
        """Which segment `offset` lies in; the first when it is below all."""
        return max(bisect_right(self._list, offset, key=_base_offset_of) - 1, 0)

    def read(
        self, start_offset: int, end_offset: int, log_end_offset: int, *, max_bytes: int, min_one_batch: bool
    ) -> FetchData:
        """See `Log.read`, which has checked that `start_offset` is in the log and below its end."""
        segment = self.active
        if start_offset < segment.base_offset:
            segment = self._list[self.slot_of(start_offset)]
        place = segment.locate(start_offset)
        while place is None:
            # Offsets that compaction took from the end of the segment.
            slot = self.slot_of(segment.base_offset) + 1
            if slot == len(self._list):
                return NOTHING
            segment = self._list[slot]
            place = segment.locate(start_offset)
        position, batch_size = place
        limit = segment.size_bytes
        if end_offset < log_end_offset:
            end = segment.locate(end_offset)
            if end is not None:
                limit = end.position
        size = limit - position
        if size > max_bytes:
            size = max_bytes
            if size < batch_size:
                # A piece of a batch is of no use: it counts as answered and is thrown away by who gets it (KIP-74).
                if not min_one_batch:
                    return NOTHING
                size = batch_size
        if size <= 0 or limit <= position:
            return NOTHING
        found = FileSlice(segment.file, position, size)
        if found.file.is_suspect:
            found.probe()
        return FetchData((found,), size)

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Those that have records in [start_offset, end_offset)."""
        found = []
        for segment in self._list[self.slot_of(start_offset) :]:
            some, is_complete = segment.transaction_index.collect(start_offset, end_offset)
            found += some
            if is_complete:
                break
        return found

    def end_of(self, data: FetchData, start_offset: int, end_offset: int) -> int:
        """No batch of `data`, which was read from `start_offset` up to `end_offset`, reaches that offset; near its end,
        as close as the index tells."""
        if not data.slices:
            return start_offset
        last = data.slices[-1]
        slot = self.slot_of(start_offset)
        while self._list[slot].file is not last.file:
            slot += 1
        behind = self._list[slot].offset_index.offset_behind(last.position + last.size)
        if behind is None and slot + 1 < len(self._list):
            behind = self._list[slot + 1].base_offset
        return end_offset if behind is None else min(behind, end_offset)

    def adopt(self, segments: list[Segment]) -> None:
        """Segments that exist, at the end."""
        self._list += segments
        self.active = self._list[-1]

    def retire_recovered(self, segments: list[Segment]) -> None:
        """Recovery made the indexes of these anew, and found files whose names may never have been synced."""
        self.retired = [segment for segment in segments if segment in self._list and segment is not self.active]
        self.directory_change_count += 1

    def add(self, base_offset: int, config: LogConfig, now_ms: int, size_bytes: int = 0) -> Segment:
        """A new active segment, or one that was found."""
        segment = Segment(
            self._files,
            self.directory,
            base_offset,
            config=config,
            created_ms=now_ms,
            roll_jitter_ms=self._roll_jitter_ms(config),
            size_bytes=size_bytes,
        )
        self._list.append(segment)
        self.active = segment
        # The file is used after all.
        self._unusable.discard(base_offset)
        return segment

    def roll(self, base_offset: int, config: LogConfig, now_ms: int) -> Segment:
        """A new active segment that begins at `base_offset`; the one before is complete."""
        before = self.active
        before.become_inactive()
        self.create(base_offset, config, now_ms)
        self.retired.append(before)
        return self.active

    def create(self, base_offset: int, config: LogConfig, now_ms: int) -> None:
        """A new active segment, and its file at once, as in Apache Kafka. OSError leaves everything as it was."""
        active = self.active if self._list else None
        segment = self.add(base_offset, config, now_ms)
        try:
            _ = segment.file
        except OSError:
            self._list.pop()
            if active is not None:
                self.active = active
            # Behind what the active segment takes in from now on, an empty one would hide it from the next start.
            self._unusable.add(base_offset)
            with suppress(OSError):
                self._remove_unusable()
            raise
        self.directory_change_count += 1

    def _remove_unusable(self) -> None:
        for base_offset in sorted(self._unusable):
            path = segment_file(self.directory, base_offset, LOG)
            if self._files.exists(path):
                self._files.remove(path)
            self._unusable.remove(base_offset)

    def delete(self, first: int, end: int, *, due_ms: int) -> list[Segment]:
        """Take the segments in slots [first, end) out and return them; their files may be removed at `due_ms`.

        OSError leaves those that still have all of their names, and the one of which some may be gone.
        """
        # Without a segment before it, the next start would take such a one for where the log begins, and ends.
        self._remove_unusable()
        deleted: list[Segment] = []
        try:
            for segment in self._list[first:end]:
                self._deleted_files += ((path, due_ms) for path in segment.mark_deleted())
                deleted.append(segment)
        finally:
            del self._list[first : first + len(deleted)]
            self.retired = [segment for segment in self.retired if segment not in deleted]
            if self._list:
                self.active = self._list[-1]
            self.directory_change_count += 1
        return deleted

    def has_inactive_run(self, base_offsets: Sequence[int]) -> bool:
        """Whether there are segments that begin at these, one behind the other, before the active one."""
        first = self.slot_of(base_offsets[0])
        run = self._list[first : first + len(base_offsets)]
        return [segment.base_offset for segment in run] == list(base_offsets) and run[-1] is not self.active

    def replace(self, base_offsets: Sequence[int], new: Segment) -> None:
        """`new` takes the place of the segments that begin at these; `mark_replaced_deleted` comes next."""
        first = self.slot_of(base_offsets[0])
        end = first + len(base_offsets)
        self._replaced += self._list[first:end]
        self._list[first:end] = [new]
        # It is synced.
        self.retired = [segment for segment in self.retired if segment not in self._replaced]

    def mark_replaced_deleted(self, due_ms: int) -> None:
        """Their files may be removed at `due_ms`. After an OSError the next call goes on with the others."""
        while self._replaced:
            self._deleted_files += ((path, due_ms) for path in self._replaced[0].mark_deleted())
            del self._replaced[0]
        self.directory_change_count += 1

    def set_aside(self, first: int) -> list[Segment]:
        """Take the segments from slot `first` on out and return them; their files stay."""
        taken = self._list[first:]
        del self._list[first:]
        self.active = self._list[-1]
        return taken

    def take_removable_files(self, now_ms: int) -> list[str]:
        """The files of deleted segments that are due; the caller removes them."""
        if not self._deleted_files:
            return []
        paths = [path for path, due_ms in self._deleted_files if due_ms <= now_ms]
        self._deleted_files = [(path, due_ms) for path, due_ms in self._deleted_files if due_ms > now_ms]
        return paths

    def put_back_removable_files(self, paths: Sequence[str], due_ms: int) -> None:
        """They could not be removed, and are due at `due_ms`."""
        self._deleted_files += ((path, due_ms) for path in paths)

    def log_files(self, start_offset: int, end_offset: int) -> list[File]:
        """The `.log` files with offsets of [start_offset, end_offset)."""
        if start_offset >= self.active.base_offset:
            return [self.active.file] if end_offset > start_offset else []
        return [
            segment.file for segment in self._list[self.slot_of(start_offset) :] if segment.base_offset < end_offset
        ]

    def close(self) -> None:
        for segment in self._list:
            segment.close()

    def moved_to(self, directory: str) -> None:
        """The folder was renamed."""
        self.directory = directory
        for segment in self._list:
            segment.moved_to(directory)
        self._deleted_files = [(f"{directory}/{path.rpartition('/')[2]}", due) for path, due in self._deleted_files]

    def _roll_jitter_ms(self, config: LogConfig) -> int:
        limit = min(config.segment_jitter_ms, config.segment_ms)
        return self._random.randrange(limit) if self._random is not None and limit > 0 else 0


def _base_offset_of(segment: Segment) -> int:
    return segment.base_offset
