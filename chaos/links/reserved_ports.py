"""Ports of a cluster behind proxies, kept from other processes that look for some at the same time.

A cluster of three nodes needs about forty. Processes that draw so many at random and listen on them half a second later
get the same one now and then. So ports are given out in blocks, and the first of a block is bound by the process that
took it for as long as it uses any.
"""

from __future__ import annotations

import random
import socket
from contextlib import closing
from types import TracebackType
from typing import Final, Self

from ...local.errors import PortInUseError
from ...local.local_node import HOST
from ...local.ports import check_free

# Below those of `local.ports`, which nodes of other clusters take.
_FIRST_PORT: Final = 10_000
_END_PORT: Final = 19_984
_BLOCK: Final = 64


class ReservedPorts:
    """Use in a `with` statement: afterwards the ports are anyone's."""

    def __init__(self, generator: random.Random) -> None:
        self._blocks = [*range(_FIRST_PORT, _END_PORT, _BLOCK)]
        generator.shuffle(self._blocks)
        self._guards: list[socket.socket] = []
        self._left: list[int] = []

    def take(self) -> int:
        """A port without a listener. Raises PortInUseError when all blocks are taken."""
        while True:
            while self._left:
                port = self._left.pop()
                try:
                    check_free(port)
                except PortInUseError:
                    continue
                return port
            self._take_block()

    def _take_block(self) -> None:
        while self._blocks:
            first = self._blocks.pop()
            # Without SO_REUSEADDR, so that it is one process's, although it does not listen.
            guard = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                guard.bind((HOST, first))
            except OSError:
                guard.close()
                continue
            self._guards.append(guard)
            self._left = [*range(first + _BLOCK - 1, first, -1)]
            return
        raise PortInUseError(f"all blocks of ports between {_FIRST_PORT} and {_END_PORT} are taken by other clusters")

    def close(self) -> None:
        while self._guards:
            with closing(self._guards.pop()):
                pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
