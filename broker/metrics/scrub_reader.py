"""The scrubbing of logs."""

from __future__ import annotations

from ...storage.directories.log_scrubber import LogScrubber
from ...storage.scrubbing.rules.scrub_job import DamagedPart
from .rules import scrub_metrics as metrics
from .rules.metric import Reading, read
from .rules.readings import Readings


class ScrubReader:
    def __init__(self, scrubber: LogScrubber) -> None:
        self._scrubber = scrubber

    def __call__(self) -> Readings:
        figures = self._scrubber.figures
        yield read(metrics.ROUNDS, figures.round_count)
        yield read(metrics.SEGMENTS, figures.segment_count)
        yield read(metrics.READ_BYTES, figures.read_bytes)
        yield Reading(metrics.FINDINGS, [((str(part),), figures.findings[part]) for part in DamagedPart])
