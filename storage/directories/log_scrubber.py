"""Reads the segments of a node's logs again and again, slowly, and sees to what is damaged (decision 23).

The reading is the `Scrubber`'s. Damaged batches are the partition's to check and to report, and the metadata's to say
whether they may be repaired from a leader (decision 8). Everything else is made anew here, from the batches.

A log that cannot be compacted, because something in it is corrupt, is scrubbed at once, whatever the interval.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from itertools import takewhile

from msgspec import Struct

from ...protocol.errors import CorruptData
from ..log.log import Log
from ..log.rules.closed_segment import ClosedSegment
from ..log.segment import Segment
from ..scrubbing.rules.scrub_job import DamagedPart, Finding, ScrubJob
from ..scrubbing.scrubber import Scrubber
from ..workers.worker_process import WorkerEnded
from .log_manager import LogManager
from .rules.scrub_figures import ScrubFigures

logger = logging.getLogger(__name__)


class LogScrubberConfig(Struct, frozen=True, kw_only=True):
    """Property names with underscores."""

    # From the begin of one round over all logs to that of the next, never before its end. 0: none.
    log_scrub_interval_ms: int = 0
    log_scrub_io_max_bytes_per_second: int = 16 * 1024 * 1024


class LogScrubber:
    def __init__(
        self,
        manager: LogManager,
        loop: asyncio.AbstractEventLoop,
        scrubber: Scrubber,
        *,
        config: LogScrubberConfig,
        on_damage: Callable[[Log, int], None],
        on_repaired: Callable[[Log], None],
    ) -> None:
        """`on_damage` is to look at the batch of a log at or behind an offset, `on_repaired` is called once what was
        damaged is repaired."""
        self._manager = manager
        self._loop = loop
        self._scrubber = scrubber
        self._config = config
        self._on_damage = on_damage
        self._on_repaired = on_repaired
        # In the order in which they were asked for.
        self._requested: dict[Log, None] = {}
        self._wake = asyncio.Event()
        self.figures = ScrubFigures()

    def request(self, log: Log) -> None:
        """Scrub it next."""
        self._requested[log] = None
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        interval_s = self._config.log_scrub_interval_ms / 1000
        due_s = self._loop.time()
        try:
            while True:
                await self._scrub_requested()
                now_s = self._loop.time()
                if interval_s > 0 and now_s >= due_s:
                    due_s = now_s + interval_s
                    await self.scrub_all()
                    continue
                self._wake.clear()
                if not self._requested:
                    try:
                        async with asyncio.timeout(due_s - now_s if interval_s > 0 else None):
                            await self._wake.wait()
                    except TimeoutError:
                        continue
        finally:
            await self._scrubber.close()

    async def scrub_all(self) -> None:
        """One round."""
        for log in list(self._manager.logs):
            await self._scrub_requested()
            # Each in a turn of its own: most may be empty.
            await asyncio.sleep(0)
            await self.scrub(log)
        self.figures.round_count += 1

    async def _scrub_requested(self) -> None:
        while self._requested:
            log = next(iter(self._requested))
            del self._requested[log]
            await self.scrub(log)

    async def scrub(self, log: Log) -> None:
        # One that has just been compacted and has not its own name yet, and those behind it, have their turn next time.
        written = log.written_segments
        named = list(takewhile(lambda segment: not segment.name_suffix, written))
        segments = {segment.base_offset: segment for segment in named}
        if not segments or log.damage is not None or not self._is_present(log):
            return
        job = ScrubJob(
            directory=log.directory,
            segments=tuple(ClosedSegment(one.base_offset, one.size_bytes) for one in segments.values()),
            end_offset=log.log_end_offset if len(named) == len(written) else written[len(named)].base_offset,
            log_start_offset=log.log_start_offset,
            leader_epochs=log.leader_epochs.entries,
            index_interval_bytes=log.config.index_interval_bytes,
            has_active=log.active_segment_base_offset in segments,
            may_have_gaps=log.config.is_compacted,
        )
        cut_count = log.swap.cut_count
        is_repaired = True
        finding_count = 0
        try:
            async with aclosing(
                self._scrubber.scrub(job, bytes_per_s=self._config.log_scrub_io_max_bytes_per_second)
            ) as results:
                async for result in results:
                    # What was cut since may have been other batches.
                    if not self._is_present(log) or log.swap.cut_count != cut_count:
                        return
                    if isinstance(result, Finding):
                        finding_count += 1
                        is_repaired = self._on_finding(log, segments[result.base_offset], result) and is_repaired
                    else:
                        self.figures.segment_count += result.segment_count
                        self.figures.read_bytes += result.read_bytes
        except (OSError, CorruptData, WorkerEnded) as error:
            if isinstance(error, OSError) and self._is_present(log):
                self._manager.on_error(log.directory, error)
            logger.warning("Failed to scrub log, the next round will: partition=%s reason=%s", log.name, error)
            return
        if finding_count and is_repaired:
            self._on_repaired(log)

    def _on_finding(self, log: Log, segment: Segment, finding: Finding) -> bool:
        """Whether it is made good."""
        if finding.part is not DamagedPart.PRODUCER_SNAPSHOT and (
            segment not in log.written_segments or segment.size_bytes < finding.size_bytes
        ):
            # Deleted or compacted since.
            return True
        self.figures.findings[finding.part] += 1
        logger.error(
            "Scrubbing found damage: partition=%s part=%s segment=%d offset=%d reason=%s",
            log.name,
            finding.part,
            finding.base_offset,
            finding.offset,
            finding.reason,
        )
        try:
            match finding.part:
                case DamagedPart.BATCHES:
                    self._on_damage(log, finding.offset)
                    return False
                case DamagedPart.OFFSET_INDEX | DamagedPart.TIME_INDEX:
                    segment.rebuild_indexes()
                case DamagedPart.TRANSACTION_INDEX:
                    segment.transaction_index.replace(finding.aborted)
                case DamagedPart.PRODUCER_SNAPSHOT:
                    log.repair_snapshot(finding.base_offset)
                case DamagedPart.LEADER_EPOCHS:
                    # No batch on this disk tells those of what only the tier has.
                    log.leader_epochs.replace_below(
                        finding.offset, finding.leader_epochs, from_offset=log.first_segment_base_offset
                    )
                    log.leader_epochs.truncate_from_start(log.log_start_offset)
        except CorruptData:
            self._on_damage(log, finding.offset)
            return False
        except OSError as error:
            self._manager.on_error(log.directory, error)
            return False
        logger.warning("Rebuilt damaged %s: partition=%s segment=%d", finding.part, log.name, finding.base_offset)
        return True

    def _is_present(self, log: Log) -> bool:
        return self._manager.get(log.topic, log.partition) is log
