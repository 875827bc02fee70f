"""Nodes that obey orders, forked from a process which has loaded their code (`local/forking_process.py`).

A cluster of a test has several nodes and starts some of them again and again: here the code is loaded once, and a node
is there in a fraction of the time. What nodes load after their start is there, too: many of them are asked for all of
it.
"""

from __future__ import annotations

import os
from typing import Final

from ...local.local_node import environment_without_properties
from ...local.preloaded_nodes import PreloadedNodes

_MODULE: Final = "penstock.chaos.faults.faulty_node"


def preload() -> PreloadedNodes:
    """For nodes with this program's environment, but for variables that nodes take for properties."""
    return PreloadedNodes(_MODULE, environment_without_properties(os.environ), ends_with_parent=True)
