"""Bits that flip in the files of a log's closed segments, and what finds them."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st
from hypothesis.stateful import rule
from node_disk import NodeDisk

from penstock.chaos.simulation.virtual_loop import VirtualLoop
from penstock.protocol.batches import iterate_headers, read_header
from penstock.storage.directories.log_scrubber import LogScrubber, LogScrubberConfig
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.log import Log
from penstock.storage.scrubbing.scrubber import ExecutorScrubber

DAMAGED_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")
"""Not a producer snapshot: nothing else on a disk knows of producers, and of transactions that began, in what is not on
it any more."""

damage_rule = rule(
    is_stopped=st.booleans(),
    number=st.integers(0, 1000),
    suffix=st.sampled_from(DAMAGED_SUFFIXES),
    share=st.floats(0, 1, exclude_max=True),
    bit=st.integers(0, 7),
)
"""Of machines: whether the process is down meanwhile, which file, and what of it."""


def closed_files(log: Log, files: MemoryFiles, suffix: str) -> list[str]:
    """Those that are not empty."""
    active = f"{log.active_segment_base_offset:020d}"
    names = [name for name in files.list_directory(log.directory) if name.endswith(suffix)]
    paths = [f"{log.directory}/{name}" for name in sorted(names) if not name.startswith(active)]
    return [path for path in paths if files.size(path)]


def flip_bit(files: MemoryFiles, path: str, share: float, bit: int, *, has_gaps: bool = False) -> None:
    """At `share` of the file; not in what no CRC covers and nothing tells. `has_gaps`: compaction left some."""
    position = int(share * files.size(path))
    if path.endswith(".log"):
        segment = files.read(path)
        starts = [start for start, _ in iterate_headers(segment)]
        at = position - max(start for start in starts if start <= position)
        is_untold_epoch = position - at == starts[-1] and 12 <= at < 16
        if is_untold_epoch or (has_gaps and at < 8):
            # The CRC.
            position += 17 - at
    files.flip_bit(path, position, bit)


def scrub(disk: NodeDisk, loop: VirtualLoop) -> int | None:
    """The first offset at which scrubbing finds a log damaged. What else it finds it has repaired."""
    found: list[int] = []
    scrubber = LogScrubber(
        disk.manager,
        loop,
        ExecutorScrubber(disk.files, loop),
        config=LogScrubberConfig(),
        on_damage=lambda _log, offset: found.append(offset),
        on_repaired=lambda _log: None,
    )
    loop.run(scrubber.scrub_all())
    return min(found, default=None)


class OtherReplica:
    """What a leader with the same log has."""

    def __init__(self, log: Log) -> None:
        self._start_offset = log.log_start_offset
        self._end_offset = log.log_end_offset
        self._producers = log.producers.below(self._start_offset, aborted=log.aborted_since(self._start_offset))
        self._batches = list(_batches_of(log))

    def repair(self, disk: NodeDisk, log: Log, offset: int) -> None:
        """`log` is cut at `offset`, and fetches what is missing, as a follower does it."""
        disk.manager.truncate({log: offset})
        if log.log_end_offset < self._start_offset:
            disk.manager.restart(log, self._start_offset, self._producers, disk.now_ms)
        missing = [batch for batch in self._batches if read_header(batch, 0).next_offset > log.log_end_offset]
        if missing:
            first = read_header(missing[0], 0).base_offset
            if first < log.log_end_offset:
                # It has begun anew at a log start that lies within that batch.
                disk.manager.restart(log, first, log.producers.below(first), disk.now_ms)
            log.append_as_follower(b"".join(missing), now_ms=disk.now_ms)
        if log.log_end_offset < self._end_offset:
            log.end_in_gap(self._end_offset, disk.now_ms)
        log.flush()


def _batches_of(log: Log) -> Iterator[bytes]:
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, max_bytes=1 << 20, end_offset=log.log_end_offset, min_one_batch=True)
        chunk = b"".join(piece.read(0, piece.size) for piece in data.slices)
        if not chunk:
            return
        for position, header in iterate_headers(chunk):
            yield chunk[position : position + header.size_bytes]
            offset = header.next_offset
