"""Rules of consumer groups do what they are for: stories of whole nodes come out as they are told.

They lie in `tests/golden/groups`; PENSTOCK_RECORD_STORIES=1 writes them anew.
"""

import pytest
from group_stories import STORIES
from story_program import golden_text, told


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [story.__name__ for story in STORIES])
def test_story_comes_out_as_it_is_told(name: str) -> None:
    child = told(name)
    assert child.returncode == 0, child.stderr[-3000:]
    assert child.stdout.splitlines() == golden_text("groups", name, child.stdout).splitlines()
