"""What the scrubbing of a node's logs has found, for its metrics."""

from collections import Counter

from msgspec import Struct, field

from ...scrubbing.rules.scrub_job import DamagedPart


class ScrubFigures(Struct):
    """Since the start."""

    round_count: int = 0
    """Rounds over all logs that have ended."""
    segment_count: int = 0
    read_bytes: int = 0
    findings: Counter[DamagedPart] = field(default_factory=Counter)
