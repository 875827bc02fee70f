"""Tells stories of whole nodes (`replication_stories.py`, `group_stories.py`), each in an interpreter of its own.

`python story_program.py groups` tells all of groups, as one JSON object from name to text; `python story_program.py
STORY`, that one, and with the name of a known bug behind it as it goes with the bug in all nodes. It needs an
interpreter of its own: of processes that are killed, tasks and connections are left that no process ends.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import group_stories
import replication_stories

from penstock.chaos.mutants.known_bugs import applied

FOLDERS = {"groups": group_stories.STORIES, "replication": replication_stories.STORIES}
"""By the name of their folder in `tests/golden`."""


def told(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What the program says."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-W", "ignore", __file__, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def golden_text(folder: str, name: str, now: str) -> str:
    """How a story comes out. PENSTOCK_RECORD_STORIES=1 has it come out as it does `now`."""
    golden = Path(__file__).parents[1] / "golden" / folder / f"{name}.txt"
    if os.environ.get("PENSTOCK_RECORD_STORIES"):
        golden.write_text(now)
    return golden.read_text()


def main(name: str, bug: str | None = None) -> None:
    gc.disable()
    if name in FOLDERS:
        json.dump({story.__name__: story().end() for story in FOLDERS[name]}, sys.stdout)
        return
    with nullcontext() if bug is None else applied(bug):
        [story] = [story for stories in FOLDERS.values() for story in stories if story.__name__ == name]
        sys.stdout.write(story().end())


if __name__ == "__main__":
    main(*sys.argv[1:])
