"""systemd takes the units as they are, and has nothing to say about how much they may do."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from deploy_files import DEPLOY
from missing_tools import unavailable

pytestmark = pytest.mark.integration

UNITS = ("penstock.service", "penstock@.service")
# Of 10; systemd calls below 3 OK, and most services of a distribution are above 9.
MOST_EXPOSED = 3.0


@pytest.fixture
def analyze() -> str:
    found = shutil.which("systemd-analyze")
    if found is None:
        unavailable("systemd-analyze is not installed (Debian: apt-get install systemd)")
    return found


@pytest.fixture
def units(tmp_path: Path) -> list[Path]:
    """The units with a program that is on this machine: systemd looks for it."""
    written = []
    for name in UNITS:
        text = (DEPLOY / "systemd" / name).read_text()
        unit = tmp_path / name.replace("@", "@node-1")
        unit.write_text(text.replace("/opt/penstock/bin/penstock", "/bin/true"))
        written.append(unit)
    return written


def test_the_units_are_correct(analyze: str, units: list[Path]) -> None:
    for unit in units:
        verified = subprocess.run(
            [analyze, "verify", "--man=no", "--generators=no", str(unit)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (verified.returncode, verified.stderr) == (0, ""), verified.stderr


def test_a_unit_that_is_not_correct_would_be_found(analyze: str, units: list[Path]) -> None:
    units[0].write_text(units[0].read_text().replace("ProtectSystem=strict", "ProtectSystem=stirct"))
    verified = subprocess.run(
        [analyze, "verify", "--man=no", "--generators=no", str(units[0])],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "stirct" in verified.stderr


def test_the_units_let_a_node_do_little_more_than_it_must(analyze: str, units: list[Path]) -> None:
    for unit in units:
        judged = subprocess.run(
            [analyze, "security", "--offline=true", "--no-pager", str(unit)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        exposure = re.search(r"exposure level for \S+: ([\d.]+)", judged.stdout)
        assert exposure is not None, judged.stdout + judged.stderr
        assert float(exposure[1]) < MOST_EXPOSED
