"""Random lives of a compacted partition: see `compacted_life.py`."""

import pytest
from compacted_life import CompactedLife
from hypothesis import settings

pytestmark = pytest.mark.thorough

TestCompactedLife = CompactedLife.TestCase
TestCompactedLife.settings = settings(max_examples=60, stateful_step_count=40)
