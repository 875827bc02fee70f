"""A process that reads a topic from its start as fast as it can: `python -m penstock.bench.cold_read HOST PORT TOPIC
PARTITIONS SECONDS` prints how many bytes came in that time. At the end it begins again.

It is a process of its own, so that what measures beside it shares no interpreter with it.
"""

from __future__ import annotations

import sys

from ..client import clock
from .wire import Socket, fetch_frame, next_offsets


def read(address: tuple[str, int], topic: str, partitions: int, seconds: float) -> int:
    """Bytes of answers. Raises RequestRefusedError."""
    positions = dict.fromkeys(range(partitions), 0)
    size = 0
    end_s = clock.monotonic_s() + seconds
    with Socket(address) as connection:
        while clock.monotonic_s() < end_s:
            connection.send(fetch_frame(topic, positions))
            answer = connection.receive_answer()
            size += len(answer)
            found = next_offsets(topic, answer)
            positions = positions | found if found else dict.fromkeys(positions, 0)
    return size


def main() -> None:
    host, port, topic, partitions, seconds = sys.argv[1:]
    sys.stdout.write(f"{read((host, int(port)), topic, int(partitions), float(seconds))}\n")


if __name__ == "__main__":
    main()
