"""The installed plugin serves the repository's own tests too."""

import sys


def test_plugin_is_loaded_once_under_its_own_name() -> None:
    assert "penstock.chaos.pytest_plugin" in sys.modules
    assert "chaos.pytest_plugin" not in sys.modules
