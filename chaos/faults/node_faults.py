"""Both ends of the file that tells a running node what goes wrong: `NodeFaults` gives orders, `OrderReader` obeys.

The file is replaced as a whole and looked at by every call of the node's disk and clock, so an order holds from the
moment in which `order` returns, for every call that begins after it, in a node that is paused or being started too.
What fired is appended to a second file, because a run whose fault never fired shows nothing.
"""

import os
import sys
from collections import Counter
from pathlib import Path
from threading import Lock
from typing import Final

from ...client import clock
from ...local.local_node import LocalNode
from ...protocol.structs import replace
from .orders import DiskFault, DiskOperation, Judge, Orders
from .request_faults import RequestFault
from .synced_ends import drop_unsynced

ENTRY_POINT: Final = "penstock.chaos.faults.faulty_node"
# Of each order: enough to see that it fired, and what it hit first.
FIRED_LINES_MAX: Final = 1000


class NodeFaults:
    """The faults of one node, which is given the entry point that obeys them. Before the node is started."""

    def __init__(self, node: LocalNode, *, seed: int = 0) -> None:
        self._orders = Orders(seed=seed)
        self._data = node.data
        self._path = node.data.with_suffix(".faults.json")
        node.command = (sys.executable, "-P", "-m", ENTRY_POINT, str(self._path))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Of orders that were given to an earlier node in this place, whose numbers begin again.
        fired_path(self._path).unlink(missing_ok=True)
        self._give(self._orders)

    def order(self, *disk: DiskFault, clock_offset_ms: int = 0) -> None:
        """From now on this is wrong with the node's disk and clock, and nothing that was ordered before."""
        self._give(
            replace(self._orders, number=self._orders.number + 1, disk=disk, clock_offset_ms=clock_offset_ms),
        )

    def order_requests(self, *requests: RequestFault) -> None:
        """From now on this happens to requests, and nothing that was ordered before; disk and clock stay as they are.

        A disk fault goes on counting where it was: the number of the orders stays.
        """
        self._give(replace(self._orders, requests=requests))

    def log_requests(self) -> None:
        """The node writes down what clients ask it, to `request_log`."""
        self._give(replace(self._orders, logs_requests=True))

    @property
    def orders_path(self) -> Path:
        """The file that the node's entry point is given."""
        return self._path

    @property
    def request_log(self) -> Path:
        return requests_path(self._path)

    def heal(self) -> None:
        self.order_requests()
        self.order()

    def fired(self) -> Counter[DiskOperation]:
        """How often calls were hit since the current order was given, by operation."""
        try:
            text = fired_path(self._path).read_text(errors="replace")
        except FileNotFoundError:
            return Counter()
        operations: Counter[DiskOperation] = Counter()
        # The node may be writing the last line, or was killed while it did.
        for line in text[: text.rfind("\n") + 1].splitlines():
            number, place = line.split(" ", 2)[:2]
            if int(number) == self._orders.number:
                operations[self._orders.disk[int(place)].operation] += 1
        return operations

    def clock_steps(self) -> int:
        """How often the node's clock was read with another offset than before: the proof that an order was obeyed."""
        try:
            return len(clock_path(self._path).read_text().splitlines())
        except FileNotFoundError:
            return 0

    def drop_unsynced(self) -> dict[Path, int]:
        """What a loss of power does, to a node that was killed: how many bytes of which files it has no more."""
        return drop_unsynced(synced_path(self._path), self._data)

    def forget_synced(self) -> None:
        """The disk of a node that is down was emptied: nothing of what it writes from now on is synced yet."""
        synced_path(self._path).unlink(missing_ok=True)

    def _give(self, orders: Orders) -> None:
        self._orders = orders
        new = self._path.with_suffix(".new")
        new.write_text(orders.encode())
        new.rename(self._path)


class OrderReader:
    """In the node: what the file says now. Calls come from the loop and from the executor's threads."""

    def __init__(self, path: str) -> None:
        """Raises OSError when there is no such file, ClusterError when it holds no orders."""
        self._path = path
        self._mutex = Lock()
        self._version: tuple[int, int] | None = None
        self._judge = Judge(Orders())
        self._lines_left = 0
        self._clock_offset_ms = 0
        self.clock_offset_ms()

    def clock_offset_ms(self) -> int:
        with self._mutex:
            offset_ms = self._current().orders.clock_offset_ms
            if offset_ms != self._clock_offset_ms:
                self._clock_offset_ms = offset_ms
                with clock_path(Path(self._path)).open("a") as file:
                    file.write(f"{offset_ms}\n")
            return offset_ms

    def suffer(self, operation: DiskOperation, path: str) -> None:
        """Raises the OSError that this call is ordered to end in, or waits, or does nothing."""
        with self._mutex:
            judge = self._current()
            verdict = judge.judge(operation, path)
            if verdict.fault is not None:
                self._report(f"{judge.orders.number} {verdict.fault} {path}\n")
        if verdict.delay_ms:
            # The disk is slow: the calling thread waits, the loop's too.
            clock.pause(verdict.delay_ms / 1000)
        if verdict.error_number is not None:
            raise OSError(verdict.error_number, os.strerror(verdict.error_number), path)

    def request_faults(self) -> tuple[tuple[RequestFault, ...], bool]:
        """Those that are ordered now, and whether requests are to be logged."""
        with self._mutex:
            orders = self._current().orders
            return orders.requests, orders.logs_requests

    def _current(self) -> Judge:
        status = os.stat(self._path)
        version = status.st_ino, status.st_mtime_ns
        if version != self._version:
            orders = Orders.decode(Path(self._path).read_text())
            if self._version is None or orders.number != self._judge.orders.number:
                self._judge = Judge(orders)
                self._lines_left = FIRED_LINES_MAX
            else:
                # Only requests have other faults: those of the disk have hit what they have hit.
                self._judge.orders = orders
            self._version = version
        return self._judge

    def _report(self, line: str) -> None:
        if self._lines_left:
            self._lines_left -= 1
            with fired_path(Path(self._path)).open("a") as file:
                file.write(line)


def fired_path(orders: Path) -> Path:
    return orders.with_suffix(".fired")


def clock_path(orders: Path) -> Path:
    """Where the node notes each offset that its clock came to have."""
    return orders.with_suffix(".clock")


def requests_path(orders: Path) -> Path:
    """Where the node keeps its `RequestLog`."""
    return orders.with_suffix(".requests")


def synced_path(orders: Path) -> Path:
    """Where the node keeps its `SyncedEnds`."""
    return orders.with_suffix(".synced")
