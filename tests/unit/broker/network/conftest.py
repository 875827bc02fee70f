"""The loop of connections in memory: nothing runs before its test says so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from wire import ManualLoop


@pytest.fixture
def loop() -> Iterator[ManualLoop]:
    loop = ManualLoop()
    yield loop
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
