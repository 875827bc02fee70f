"""A node in a process that has loaded its code before: `local/forking_process.py` forks from such a process.

Most of what a node does before it serves is to load its code. Nodes that are started together load it once.
"""

from __future__ import annotations

from .node_code import load, load_for_several

__all__ = ["load", "load_for_several", "run"]


def run(properties_path: str) -> int:
    """`penstock start PROPERTIES`; returns the exit status."""
    from .start_command import start

    return int(start.main([properties_path], prog_name="penstock start", standalone_mode=False) or 0)
