"""The process in which a node's logs are compacted and scrubbed: `python -m penstock.storage.workers.worker`.

An order a line on standard input, its answers a line each on standard output; it ends with its input. It ends as well
when the node does, however that ends: a compaction that went on would write into the folders of the node's next start.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Final

from ...protocol.errors import CorruptData
from ..compaction.compaction import compact
from ..disk.files import DiskFiles
from ..disk.rules.throttle import RateThrottle, Throttle
from ..scrubbing.scrub import scrub
from .parent_end import signal_at_end_of
from .rules.work_order import ENCODER, ORDERS, WorkAnswer, WorkOrder, to_answer, to_failure

_OPEN_FILES_MAX: Final = 64
_NICENESS: Final = 10
"""Produce and fetch go first where processors are short."""


class _WhileParentLives:
    """Where the system does not end a process with its parent, each chunk asks whether it is there."""

    def __init__(self, parent: int, throttle: Throttle) -> None:
        self._parent = parent
        self._throttle = throttle

    def take(self, size_bytes: int) -> None:
        if os.getppid() != self._parent:
            os._exit(1)
        self._throttle.take(size_bytes)


def main() -> None:
    parent = int(sys.argv[1])
    signal_at_end_of(parent, signal.SIGKILL)
    # The terminal's Ctrl-C is for the node, which then ends this.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICENESS)
    files = DiskFiles(max_open_files=_OPEN_FILES_MAX)
    output = sys.stdout.buffer
    for line in sys.stdin.buffer:
        for answer in _answers(files, ORDERS.decode(line), parent):
            output.write(ENCODER.encode(answer) + b"\n")
            output.flush()


def _answers(files: DiskFiles, order: WorkOrder, parent: int) -> Iterator[WorkAnswer]:
    # This process has no loop, and only its own work waits while it sleeps.
    rate = RateThrottle(order.bytes_per_s, now_s=time.monotonic, sleep_s=time.sleep)  # noqa: TID251
    throttle = _WhileParentLives(parent, rate)
    try:
        if order.compaction is not None:
            yield from map(to_answer, compact(files, order.compaction, throttle))
        elif order.scrub is not None:
            yield from map(to_answer, scrub(files, order.scrub, throttle))
    except (CorruptData, OSError) as error:
        yield WorkAnswer(failure=to_failure(error))


if __name__ == "__main__":
    main()
