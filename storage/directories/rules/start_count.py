"""The file `.penstock_starts`: how often a process has started on its log directory: {"version":0,"starts":7}

The lock of the directory lets one process start after the other, so of two that had it the one with the higher number
is the later one, whatever clocks and networks do. Apache Kafka leaves the file alone.
"""

import json
from typing import Final

START_COUNT_FILE: Final = ".penstock_starts"
START_COUNT_MAX: Final = 2**48 - 1
"""It is part of an id; no node starts so often."""
_VERSION: Final = 0


def encode_start_count(count: int) -> bytes:
    return f'{{"version":{_VERSION},"starts":{count}}}'.encode()


def decode_start_count(data: bytes) -> int:
    """The count, 0 for a file without one."""
    try:
        content = json.loads(data)
    except ValueError:
        return 0
    count = content.get("starts") if isinstance(content, dict) else None
    return count if type(count) is int and 0 <= count < START_COUNT_MAX else 0
