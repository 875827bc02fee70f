"""Each repair of Kafka's replication does what it is for: stories of whole nodes come out as they are told.

They lie in `tests/golden/replication`, to be read before code. After a change that is meant,
PENSTOCK_RECORD_STORIES=1 writes them anew.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from replication_stories import PROGRAM, STORIES, story_environment

GOLDEN = Path(__file__).parents[1] / "golden" / "replication"


@pytest.fixture(scope="module")
def told() -> Mapping[str, str]:
    child = subprocess.run(
        [sys.executable, "-W", "ignore", PROGRAM], env=story_environment(), capture_output=True, text=True
    )
    assert child.returncode == 0, child.stderr[-3000:]
    stories: Mapping[str, str] = json.loads(child.stdout)
    return stories


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [story.__name__ for story in STORIES])
def test_story_comes_out_as_it_is_told(name: str, told: Mapping[str, str]) -> None:
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("PENSTOCK_RECORD_STORIES"):
        golden.write_text(told[name])
    assert told[name].splitlines() == golden.read_text().splitlines()
