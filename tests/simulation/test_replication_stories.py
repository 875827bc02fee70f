"""Each repair of Kafka's replication does what it is for: stories of whole nodes come out as they are told.

They lie in `tests/golden/replication`, to be read before code. After a change that is meant,
PENSTOCK_RECORD_STORIES=1 writes them anew.
"""

import json
from collections.abc import Mapping

import pytest
from replication_stories import STORIES
from story_program import golden_text, told


@pytest.fixture(scope="module")
def texts() -> Mapping[str, str]:
    child = told("replication")
    assert child.returncode == 0, child.stderr[-3000:]
    stories: Mapping[str, str] = json.loads(child.stdout)
    return stories


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [story.__name__ for story in STORIES])
def test_story_comes_out_as_it_is_told(name: str, texts: Mapping[str, str]) -> None:
    assert texts[name].splitlines() == golden_text("replication", name, texts[name]).splitlines()
