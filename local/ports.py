"""Ports for local clusters, kept from other processes that look for some at the same time.

A cluster of three nodes needs nine, one behind proxies about forty. Processes that draw so many at random and listen on
them a second later, or have a node down for a moment, get the same one now and then. So ports are taken in blocks, and
the first of a block is bound by the process that took it for as long as it uses any.
"""

from __future__ import annotations

import os
import random
import socket
from collections import deque
from types import TracebackType
from typing import Final, Self

from .errors import PortInUseError
from .local_node import HOST

# Below the range that systems take from for outgoing connections (32768 on Linux, 49152 elsewhere): a port that such a
# connection took while its node was down for a moment could not be bound again.
_FIRST_PORT: Final = 10_000
PORT_MAX: Final = 65_535
_BLOCK: Final = 64
_BLOCK_COUNT: Final = 343
# A process that starts cluster after cluster gives the oldest blocks back, of clusters that are over.
_BLOCKS_OF_PROCESS: Final = 16


def check_free(port: int) -> None:
    """Raises PortInUseError when a node could not listen there."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do, so that connections of an earlier run that are still closing do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen()
        except OSError as error:
            raise PortInUseError(f"port {port} on {HOST} cannot be used: {error.strerror}") from error


class ReservedPorts:
    """Ports of one owner: no port is given twice, nor to another process, while its block is kept.

    Use in a `with` statement: afterwards the ports are anyone's. Safe to share between threads.
    """

    def __init__(self, *, blocks_max: int | None = None) -> None:
        """With `blocks_max`, the oldest block is given back for each one above that."""
        self._blocks_max = blocks_max
        self._guards: deque[socket.socket] = deque()
        self._left: list[int] = []

    def take(self, generator: random.Random) -> int:
        """A port without a listener. Raises PortInUseError when all blocks are taken."""
        while True:
            try:
                port = self._left.pop()
            except IndexError:
                # Two threads may come here at once: then each takes a block, and the ports of one are not given.
                self._take_block(generator)
                continue
            try:
                check_free(port)
            except PortInUseError:
                continue
            return port

    def _take_block(self, generator: random.Random) -> None:
        for index in generator.sample(range(_BLOCK_COUNT), _BLOCK_COUNT):
            first = _FIRST_PORT + index * _BLOCK
            # Without SO_REUSEADDR, so that it is one process's, although it does not listen.
            guard = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                guard.bind((HOST, first))
            except OSError:
                guard.close()
                continue
            self._guards.append(guard)
            if self._blocks_max is not None and len(self._guards) > self._blocks_max:
                self._guards.popleft().close()
            self._left = [*range(first + _BLOCK - 1, first, -1)]
            return
        last = _FIRST_PORT + _BLOCK_COUNT * _BLOCK - 1
        raise PortInUseError(f"all blocks of ports between {_FIRST_PORT} and {last} are taken by other clusters")

    def close(self) -> None:
        while self._guards:
            self._guards.pop().close()
        self._left.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_of_process: Final = ReservedPorts(blocks_max=_BLOCKS_OF_PROCESS)
# A fork would give out what its parent has left. That it closes its copies of the guards frees none of them.
os.register_at_fork(after_in_child=_of_process.close)


def find_free(generator: random.Random) -> int:
    """A port without a listener at this moment, not given by this process before, and kept from other processes.

    Raises PortInUseError when there seems to be none.
    """
    return _of_process.take(generator)
