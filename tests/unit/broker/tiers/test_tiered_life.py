"""Random lives of a partition with tiered storage: see `tiered_life.py`."""

import os

import pytest
from hypothesis import settings
from tiered_life import TieredLife

pytestmark = [pytest.mark.timeout(1800), pytest.mark.thorough]

IS_SOAK = os.environ.get("PENSTOCK_TEST_PROFILE", "check") != "check"
TestTieredLife = TieredLife.TestCase
TestTieredLife.settings = settings(max_examples=3000 if IS_SOAK else 25, stateful_step_count=30)
