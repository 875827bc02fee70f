"""Alerts as Prometheus takes them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from missing_tools import unavailable

ALERTS = Path(__file__).resolve().parents[3] / "deploy/prometheus/alerts.yml"


@pytest.mark.integration
def test_alerts_fire_and_clear_when_they_should() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        unavailable("promtool is not installed (Debian: apt-get install prometheus)")
    done = subprocess.run(
        [promtool, "test", "rules", "alerts_test.yml"], cwd=ALERTS.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
