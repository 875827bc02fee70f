"""The installed plugin serves the repository's own tests too, and costs other projects' tests nothing."""

import subprocess
import sys
from typing import Final

# In a process of its own: here everything is loaded already.
PROGRAM: Final = """
import sys
import pytest
before = set(sys.modules)
import penstock.chaos.pytest_plugin
print(sorted(name for name in set(sys.modules) - before if name != "__future__"))
"""


def test_plugin_is_loaded_once_under_its_own_name() -> None:
    assert "penstock.chaos.pytest_plugin" in sys.modules
    assert "chaos.pytest_plugin" not in sys.modules


def test_plugin_loads_nothing_but_pytest() -> None:
    answer = subprocess.run([sys.executable, "-P", "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "['penstock', 'penstock.chaos', 'penstock.chaos.pytest_plugin']"
