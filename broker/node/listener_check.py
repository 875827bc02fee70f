"""Whether the listeners of a node can be bound, asked before the node makes anything on its disk."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable
from typing import Final

from ..configuration.listener_config import ListenerConfig

# Whatever else goes wrong is found, and said, when the listener is bound in earnest.
_REFUSALS: Final = frozenset({errno.EADDRINUSE, errno.EACCES})


def unusable_listener(listeners: Iterable[ListenerConfig]) -> str | None:
    """The sentence for the first listener whose port is taken or not allowed."""
    for listener in listeners:
        if not listener.port:
            continue
        family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as attempt:
            # As servers do: connections of an earlier run that are still closing do not count.
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                attempt.bind((listener.host, listener.port))
                attempt.listen()
                continue
            except OSError as error:
                if error.errno not in _REFUSALS:
                    continue
                return (
                    f"Listener {listener} cannot be bound: {error.strerror}. The property listeners names "
                    f"another port, or on the command line --set listeners={listener.name}://HOST:PORT."
                )
    return None
