"""docs/testing-your-application.md: all of its code, run as its reader runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tutorial_page
from missing_tools import need_toxiproxy

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]


def run(folder: Path, *arguments: str) -> str:
    # A reader's Python finds the modules beside a program.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    ran = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_every_block_names_its_file() -> None:
    assert tutorial_page.PAGE.read_text().count("```python\n") == len(tutorial_page.files()) == 10


def test_code_of_the_page_passes(tmp_path: Path) -> None:
    need_toxiproxy()
    tutorial_page.write(tmp_path)
    # Its modules import each other, so its folder is on the path, as it is for a reader.
    told = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--durations=0")
    assert "13 passed" in told, told
    assert run(tmp_path, "without_framework.py").strip() == "0"
