"""A process that a node has started ends with the node, however that ends (Linux: PR_SET_PDEATHSIG)."""

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def signal_at_end_of(parent: int, number: signal.Signals) -> None:
    """This process gets the signal when its parent ends, or has ended by now. Other systems have no such thing."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        # It ended before this was asked for.
        os.kill(os.getpid(), number)
