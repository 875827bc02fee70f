"""Random entities of kio's classes, as a fixture."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from random_entities import random_entity


@pytest.fixture(name="random_entity", scope="session")
def _random_entity() -> Callable[[Any, random.Random], Any]:
    """Makes an instance of a kio class, every field random; some optional ones are None, some tagged ones default."""
    return random_entity
