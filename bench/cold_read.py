"""A process that reads a topic from its start as fast as it can: `python -m penstock.bench.cold_read HOST PORT TOPIC
PARTITIONS SECONDS` prints how many bytes came in that time. Partitions that have been read to their end
begin again.

It is a process of its own, so that what measures beside it shares no interpreter with it.
"""

from __future__ import annotations

import sys

from ..client import clock
from .wire import Socket, fetch_frame, high_watermarks, next_offsets


def read(address: tuple[str, int], topic: str, partitions: int, seconds: float) -> int:
    """Bytes of answers. Raises RequestRefusedError."""
    positions = dict.fromkeys(range(partitions), 0)
    size = 0
    end_s = clock.monotonic_s() + seconds
    with Socket(address) as connection:
        while clock.monotonic_s() < end_s:
            connection.send(fetch_frame(topic, positions))
            with connection.receive_answer() as answer:
                size += len(answer)
                ends = high_watermarks(topic, answer)
                reached = positions | next_offsets(topic, answer)
            positions = {partition: 0 if offset >= ends[partition] else offset for partition, offset in reached.items()}
    return size


def main() -> None:
    host, port, topic, partitions, seconds = sys.argv[1:]
    sys.stdout.write(f"{read((host, int(port)), topic, int(partitions), float(seconds))}\n")


if __name__ == "__main__":
    main()
