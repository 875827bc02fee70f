"""What an append answers."""

from typing import NamedTuple


class AppendInfo(NamedTuple):
    """Where a batch is. A tuple, because one is made for every append."""

    first_offset: int
    last_offset: int
    # -1 unless the topic has LogAppendTime. Of a batch that was there already: its largest timestamp on any topic.
    log_append_time_ms: int
    log_start_offset: int
    # It was there already: the offsets are those of the first time.
    is_duplicate: bool
