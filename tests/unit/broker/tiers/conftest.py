"""What the tests of tiered storage share."""

import pytest
from memory_tier import MemoryTier


@pytest.fixture
def tier() -> MemoryTier:
    return MemoryTier()
