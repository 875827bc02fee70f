"""`python -m penstock.chaos.faults.faulty_node ORDERS PROPERTIES`: `penstock start` with what obeys orders.

The node is the same, given other files, another clock and a way that requests go through; nothing in it knows. ORDERS
is the file of `NodeFaults`.
"""

import os
import sys
from pathlib import Path

from ...broker.configuration.properties import load_properties, merge_properties
from ...broker.node import main, node_code
from ...protocol.errors import ConfigError
from ...storage.disk.files import DiskFiles
from .faulty_files import FaultyFiles
from .faulty_requests import FaultyRequests
from .node_faults import OrderReader, requests_path, synced_path
from .request_log import RequestLog
from .synced_ends import SyncedEnds


def load() -> None:
    """For `local/forking_process.py`. What nodes load after their start is there, too: tests ask for all of it."""
    node_code.load()
    node_code.load_for_several()
    node_code.load_handlers()


def run(orders_path: str, properties_path: str) -> int:
    """Returns the exit status, as `penstock start` does."""
    orders = OrderReader(orders_path)
    try:
        config = load_properties(
            merge_properties(
                file_text=Path(properties_path).read_text(encoding="utf-8"), environment=os.environ, assignments=()
            ),
            files=DiskFiles(),
            environment=os.environ,
        )
    except ConfigError as error:
        sys.stderr.write(f"penstock: {error}\n")
        return 2
    path = Path(orders_path)
    return main.run(
        config,
        files=FaultyFiles(DiskFiles(), orders, SyncedEnds(synced_path(path))),
        wall_clock_ms=lambda: main.wall_clock_ms() + orders.clock_offset_ms(),
        intercept=FaultyRequests(orders, RequestLog(requests_path(path)), str(config.node_id)).intercept,
    )


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
