"""The page of a run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from made_up_run import make_run_folder

from penstock.chaos.histories.run_folder import RunFolder
from penstock.chaos.report.page import page
from penstock.chaos.report.recorded_run import read_run
from penstock.chaos.runs.report_command import report
from penstock.local.errors import ClusterError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("run")
    make_run_folder(made, duration_s=30, rate=20)
    return made


def verdict_of(folder: Path, **verdict: object) -> str:
    (folder / "verdict.json").write_text(json.dumps(verdict))
    found = re.search(r'id="verdict">([^<]*)<', page(read_run(RunFolder(folder))))
    assert found is not None
    return found[1]


def test_the_command_writes_one_page_that_asks_for_nothing_else(folder: Path) -> None:
    result = CliRunner().invoke(report, [str(folder)])
    assert result.exit_code == 0, result.output
    html = (folder / "report.html").read_text()
    assert "http://" not in html
    assert "https://" not in html
    assert not re.search(r"<link|<img|src=|@import|url\(", html)


def test_the_verdict_comes_first_with_the_line_that_repeats_the_run_last(folder: Path) -> None:
    html = page(read_run(RunFolder(folder)))
    places = [html.index(part) for part in ('id="verdict"', 'id="evidence"', 'id="timeline"', 'id="stories"')]
    assert places == sorted(places)
    assert html.index("penstock chaos run --workload queue") > places[-1]


def test_every_drawing_is_well_formed_and_says_what_it_shows(folder: Path) -> None:
    html = page(read_run(RunFolder(folder)))
    drawings = re.findall(r'<svg class="(?:chart|lanes)".*?</svg>', html, re.DOTALL)
    assert len(drawings) >= 10
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        assert root[0].tag == "title"
        assert root[0].text
        assert root[1].tag == "desc"
        assert root[1].text


def test_links_within_the_page_lead_to_what_is_there(folder: Path) -> None:
    html = page(read_run(RunFolder(folder)))
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert set(re.findall(r'href="#([^"]+)"', html)) <= set(ids)
    assert len(set(re.findall(r'id="((?:finding|fault)-[^"]+)"', html))) >= 8


@pytest.mark.parametrize(
    ("verdict", "title"),
    [
        ({"valid": "valid"}, "Valid"),
        ({"valid": "invalid-run", "notes": ["the fault kill never occurred"]}, "Invalid run"),
        ({"valid": "anomalies", "findings": [{"type": "lost-write", "message": "gone"}]}, "1 anomaly"),
        (
            {
                "valid": "anomalies",
                "findings": [{"type": "lost-write", "message": "gone"}],
                "counts": {"lost-write": 40},
            },
            "40 anomalies",
        ),
        (
            {"valid": "valid", "findings": [{"type": "unseen", "message": "gone", "allowed": True}]},
            "Valid, 1 allowed loss",
        ),
        (
            {
                "valid": "valid",
                "findings": [{"type": "lost-write", "message": "gone", "allowed": True}],
                "counts": {"lost-write": 500},
            },
            "Valid, 500 allowed losses",
        ),
    ],
)
def test_the_verdict_is_one_of_these(tmp_path: Path, verdict: dict[str, object], title: str) -> None:
    make_run_folder(tmp_path, duration_s=10, rate=5)
    assert verdict_of(tmp_path, **verdict) == title


def test_a_run_without_an_anomaly_has_the_story_of_a_record_that_met_a_fault(tmp_path: Path) -> None:
    make_run_folder(tmp_path, duration_s=30, is_anomalous=False)
    html = page(read_run(RunFolder(tmp_path)))
    assert "Of all acknowledged records that met a fault" in html
    assert 'id="evidence"' not in html


def test_what_nothing_promises_to_prevent_comes_after_the_time_line_and_is_marked_nowhere(tmp_path: Path) -> None:
    make_run_folder(tmp_path, duration_s=10, rate=5)
    finding = {"type": "G0", "message": "a cycle", "allowed": True, "why_allowed": "so", "operations": [9]}
    (tmp_path / "verdict.json").write_text(json.dumps({"valid": "valid", "findings": [finding]}))
    html = page(read_run(RunFolder(tmp_path)))
    assert html.index('id="timeline"') < html.index('id="evidence"')
    assert "Allowed: 1 finding<" in html
    assert 'class="mark"' not in html


def test_the_steps_of_a_cycle_are_listed_one_after_the_other(tmp_path: Path) -> None:
    make_run_folder(tmp_path, duration_s=10, rate=5)
    steps = [{"text": "T1 wrote 3, which T2 read"}, {"text": "T2 wrote 4 before T1"}]
    finding = {"type": "G1c", "message": "a cycle", "detail": {"steps": steps}}
    (tmp_path / "verdict.json").write_text(json.dumps({"valid": "anomalies", "findings": [finding]}))
    html = page(read_run(RunFolder(tmp_path)))
    assert "<li>T1 wrote 3, which T2 read</li><li>T2 wrote 4 before T1</li>" in html


def test_text_of_a_run_is_never_markup(tmp_path: Path) -> None:
    make_run_folder(tmp_path, duration_s=10, rate=5)
    evil = "</script><script>alert(1)</script>"
    finding = {"type": evil, "message": evil, "key": evil, "why_allowed": evil, "detail": {evil: evil}}
    (tmp_path / "verdict.json").write_text(
        json.dumps({"valid": "anomalies", "findings": [finding], "notes": [evil], "statistics": {evil: {evil: evil}}})
    )
    record = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**record, "properties": {evil: evil}}))
    history = (tmp_path / "history.jsonl").read_text().replace("orders-0", evil.replace("/", "\\/"))
    (tmp_path / "history.jsonl").write_text(history)
    html = page(read_run(RunFolder(tmp_path)))
    assert "alert(1)" in html
    assert "<script>alert" not in html
    assert html.count("</script>") == 2


def test_a_history_alone_has_a_page_that_says_it_is_not_judged(tmp_path: Path) -> None:
    make_run_folder(tmp_path, duration_s=10, rate=5)
    for name in ("cluster.jsonl", "verdict.json", "run.json"):
        (tmp_path / name).unlink()
    html = page(read_run(RunFolder(tmp_path)))
    assert "Not judged" in html
    assert 'id="panel-throughput"' in html
    assert 'id="panel-leader"' not in html


def test_an_empty_history_has_a_page(tmp_path: Path) -> None:
    make_run_folder(tmp_path, duration_s=10, rate=5)
    header, *_ = (tmp_path / "history.jsonl").read_text().splitlines()
    (tmp_path / "history.jsonl").write_text(f"{header}\n")
    (tmp_path / "cluster.jsonl").write_text("")
    assert 'id="verdict"' in page(read_run(RunFolder(tmp_path)))


def test_a_folder_without_a_history_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="has no history"):
        read_run(RunFolder(tmp_path))
    result = CliRunner().invoke(report, [str(tmp_path)])
    assert result.exit_code == 1
    assert "has no history.jsonl" in result.output


def test_a_damaged_verdict_is_refused_by_its_name(tmp_path: Path) -> None:
    make_run_folder(tmp_path, duration_s=10, rate=5)
    (tmp_path / "verdict.json").write_text('{"valid": 3}')
    with pytest.raises(ClusterError, match=r"verdict\.json cannot be read"):
        read_run(RunFolder(tmp_path))
