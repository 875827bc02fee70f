"""The past of a log that begins behind its start on this disk: the records before are in the tier only (KIP-405)."""

from collections.abc import Sequence
from typing import NamedTuple

from ....protocol.ids import LeaderEpoch


class TieredHistory(NamedTuple):
    log_start_offset: int
    leader_epochs: Sequence[tuple[LeaderEpoch, int]]
    """Epochs and their start offsets, from the log start offset up to where the log on this disk begins."""
