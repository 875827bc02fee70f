"""Clock and chance of this interpreter are a simulation's from the first import of this module on.

Import it before any client: some of them take hold of a clock then. Nothing undoes it, so only `program.py` does.
"""

from __future__ import annotations

from typing import Final

from ..cluster.world import World

WORLD: Final = World()
WORLD.replace(0)
