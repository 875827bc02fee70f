"""The samples of suites come first: one that takes five minutes and begins last keeps all other workers waiting."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: Path(__file__).parent not in item.path.parents)
