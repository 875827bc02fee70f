"""Alerts and dashboards as files: fresh, complete, and of metrics that there are."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from penstock.broker.metrics.rules.catalog import catalog
from penstock.pipeline.progress import pipeline_metrics

ROOT = Path(__file__).resolve().parents[3]
ALERTS = ROOT / "deploy/prometheus/alerts.yml"
BOARDS = sorted((ROOT / "deploy/grafana/dashboards").glob("*.json"))
_METRIC = re.compile(r"\b(?:kafka|penstock|process|python)_[a-z0-9_]+")
_OF_THE_CLIENT = re.compile(r"process_|python_")


def _known() -> set[str]:
    names = {metric.name for metrics in catalog().values() for metric in metrics}
    names |= {metric.name for metric in pipeline_metrics.METRICS}
    return names | {f"{name}{suffix}" for name in names for suffix in ("_count", "_sum")}


def _queries(board: Path) -> list[str]:
    panels = json.loads(board.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def test_dashboards_are_as_their_code_makes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mended by `make docs`."""
    monkeypatch.syspath_prepend(ROOT / "deploy/grafana")
    made = runpy.run_path(str(ROOT / "deploy/grafana/dashboards.py"))
    assert {one.stem: one.read_text() for one in BOARDS} == {
        one.name: made["render"](one) for one in made["DASHBOARDS"]
    }


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.stem)
def test_a_dashboard_asks_for_metrics_that_there_are(board: Path) -> None:
    asked = {name for query in _queries(board) for name in _METRIC.findall(query)}
    assert {name for name in asked if not _OF_THE_CLIENT.match(name)} - _known() == set()


def test_alerts_ask_for_metrics_that_there_are() -> None:
    expressions = " ".join(re.findall(r"expr:(.*?)\n        for:", ALERTS.read_text(), re.DOTALL))
    asked = set(_METRIC.findall(expressions))
    assert len(asked) > 15
    assert {name for name in asked if not _OF_THE_CLIENT.match(name)} - _known() == set()


def test_every_alert_has_a_test_and_an_entry_in_the_runbook() -> None:
    alerts = re.findall(r"- alert: (\w+)", ALERTS.read_text())
    tested = re.findall(r"- name: (\w+)", (ROOT / "deploy/prometheus/alerts_test.yml").read_text())
    assert alerts == tested
    told = re.findall(r"^### (Penstock\w+)$", (ROOT / "docs/operations.md").read_text(), re.MULTILINE)
    assert alerts == told
    assert len(alerts) == len(re.findall(r"runbook: docs/operations.md#", ALERTS.read_text()))
