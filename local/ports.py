"""Ports for local clusters."""

import random
import socket
from collections import deque
from typing import Final

from .errors import PortInUseError
from .local_node import HOST

# Below the range that systems take from for outgoing connections (32768 on Linux, 49152 elsewhere): a port that such a
# connection took while its node was down for a moment could not be bound again.
_FIRST_PORT: Final = 20_000
_END_PORT: Final = 32_000
_MAX_TRIES: Final = 200
# What this process gave last. Who they were for may not listen yet, or be down for a moment.
_given: Final[deque[int]] = deque(maxlen=1000)


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


def find_free(generator: random.Random) -> int:
    """A port without a listener at this moment, and not one of the last thousand that this process was given.

    Raises PortInUseError when there seems to be none.
    """
    for _ in range(_MAX_TRIES):
        port = generator.randrange(_FIRST_PORT, _END_PORT)
        if port in _given:
            continue
        try:
            check_free(port)
        except PortInUseError:
            continue
        _given.append(port)
        return port
    raise PortInUseError(f"no free port found in {_MAX_TRIES} tries between {_FIRST_PORT} and {_END_PORT}")
