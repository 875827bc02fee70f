"""What the tests of this package start from."""

import pytest
from metadata_cluster import Cluster


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster without brokers."""
    return Cluster()
