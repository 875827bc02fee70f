"""Known bugs that random runs hardly find break the stories that `penstock chaos calibrate` tells for them."""

import pytest
from story_program import FOLDERS

from penstock.chaos.mutants.calibration import calibrate
from penstock.chaos.mutants.forms import STORIES


def test_there_are_these_stories() -> None:
    names = {story.__name__ for stories in FOLDERS.values() for story in stories}
    assert {story.name for story in STORIES.values()} <= names


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", STORIES)
def test_a_bug_breaks_its_story(name: str) -> None:
    caught = calibrate(name, seeds_max=1)
    assert caught.is_caught, caught
