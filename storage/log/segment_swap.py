"""Putting a segment that compaction has written into the place of those it was made from.

    begin      its ….cleaned files become ….swap                     then sync the folder: a start now goes on with it
    place      the log reads it; the files of the old ones become ….deleted             then sync the folder
    finish     its ….swap files get their names

A stop anywhere leaves what `leftover_files.tidy` undoes or finishes. In between nothing may cut the log or delete of
it: who is about to do that calls `settle`, or `settle_for_cut`. Kafka: `UnifiedLog.replaceSegments`.
"""

from collections.abc import Callable, Iterator, Sequence

from ..disk.files import Files
from .producer_snapshots import ProducerSnapshots
from .rules.config import LogConfig
from .rules.file_names import CLEANED, INDEX_SUFFIXES, LOG, SWAP, segment_file
from .segment import Segment
from .segments import Segments


class SwapSettled(Exception):  # noqa: N818 - nothing failed
    """The log was about to be cut, or to lose segments, so the swap was given up: the old segments stay."""


class SegmentSwap:
    """At most one of a log is under way. OSError of a step leaves it to be done again, or to `settle`."""

    __slots__ = ("_files", "_new", "_replaced", "_segments", "_snapshots", "cut_count")

    def __init__(self, files: Files, segments: Segments, snapshots: ProducerSnapshots) -> None:
        self._files = files
        self._segments = segments
        self._snapshots = snapshots
        self._new: Segment | None = None
        # Base offsets, until they are out of the log; then none.
        self._replaced: Sequence[int] = ()
        self.cut_count = 0
        """That many times the log was cut: other batches may be where a compaction has read some."""

    def can_replace(self, base_offsets: Sequence[int], cut_count: int) -> bool:
        """Whether segments begin at these, one behind the other, that are as they were when there were so many cuts."""
        return cut_count == self.cut_count and self._segments.has_inactive_run(base_offsets)

    def steps(
        self,
        base_offset: int,
        size_bytes: int,
        replaced: Sequence[int],
        config: LogConfig,
        *,
        clock_ms: Callable[[], int],
    ) -> Iterator[None]:
        """All of a swap. Wherever it stops, the caller syncs the folder before it goes on. SwapSettled, OSError."""
        self.begin(base_offset, size_bytes, replaced, config, created_ms=clock_ms())
        yield
        if not self.place(clock_ms() + config.file_delete_delay_ms):
            raise SwapSettled
        yield
        self.finish()

    def begin(
        self, base_offset: int, size_bytes: int, replaced: Sequence[int], config: LogConfig, created_ms: int
    ) -> None:
        """The segments that begin at `replaced` are to go, `can_replace` has said that they may."""
        self.settle()
        self._new = Segment(
            self._files,
            self._segments.directory,
            base_offset,
            config=config,
            created_ms=created_ms,
            size_bytes=size_bytes,
            name_suffix=SWAP,
        )
        self._replaced = replaced
        self._rename(CLEANED, SWAP)

    def place(self, due_ms: int) -> bool:
        """The names that `begin` made are synced. False when the swap was settled meanwhile; nothing has changed then.

        The files of the old segments may be removed at `due_ms`.
        """
        if self._new is None:
            return False
        if self._replaced:
            replaced, self._replaced = self._replaced, ()
            self._segments.replace(replaced, self._new)
            for base_offset in replaced[1:]:
                self._snapshots.remove(base_offset)
        self._segments.mark_replaced_deleted(due_ms)
        return True

    def finish(self) -> None:
        """The names that `place` made are synced. They need not be: only `settle` and the next swap ask for more."""
        if self._new is None:
            return
        self._rename(SWAP, "")
        self._new.renamed_to("")
        self._new = None
        self._segments.directory_change_count += 1

    def settle(self) -> None:
        """Finish it if the log reads the new segment already, waiting; else give it up. OSError."""
        if self._new is None:
            return
        if self._replaced:
            self._remove(self._new.base_offset, SWAP)
            self._remove(self._new.base_offset, CLEANED)
            self._new.close()
            self._new = None
            self._replaced = ()
            self._segments.directory_change_count += 1
            return
        self._segments.mark_replaced_deleted(0)
        self._files.sync_directory(self._segments.directory)
        self.finish()

    def settle_for_cut(self) -> None:
        """The log is about to be cut, waiting. OSError."""
        self.cut_count += 1
        self.settle()

    def remove_cleaned(self) -> None:
        """What a compaction has left that is not wanted. OSError."""
        directory = self._segments.directory
        for name in self._files.list_directory(directory):
            if name.endswith(CLEANED):
                self._files.remove(f"{directory}/{name}")

    def _remove(self, base_offset: int, suffix: str) -> None:
        for one in (LOG, *INDEX_SUFFIXES):
            path = segment_file(self._segments.directory, base_offset, one) + suffix
            if self._files.exists(path):
                self._files.remove(path)

    def _rename(self, source: str, target: str) -> None:
        assert self._new is not None
        # The log last: indexes without it are removed at the next start.
        for suffix in (*INDEX_SUFFIXES, LOG):
            path = segment_file(self._segments.directory, self._new.base_offset, suffix)
            if self._files.exists(path + source):
                self._files.rename(path + source, path + target)
