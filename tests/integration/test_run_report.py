"""The page of a run in a browser: what it shows, what the pointer adds, and that it fits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import chromium
from click.testing import CliRunner
from made_up_run import make_run_folder
from playwright.sync_api import Browser, Page, expect

from penstock.chaos.runs.report_command import report

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

# A path of more than a few points.
DATA = re.compile(r"^M.{40}", re.DOTALL)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("run")
    make_run_folder(folder)
    assert CliRunner().invoke(report, [str(folder)]).exit_code == 0
    return (folder / "report.html").as_uri()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """An error in its script fails the test, as does anything that it asks for."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith(address) else problems.append(request.url))
    page.goto(address)
    yield page
    context.close()
    assert problems == []


def view_box(page: Page, panel: str) -> list[float]:
    told = page.locator(f"#panel-{panel} svg").get_attribute("viewBox")
    assert told is not None
    return [float(number) for number in told.split()]


def test_verdict_and_charts_are_there_and_the_pointer_tells_values(page: Page) -> None:
    expect(page.locator("#verdict")).to_have_text("1 anomaly")
    expect(page.locator("#verdict")).to_be_in_viewport()
    for chart in ("throughput", "latency", "unseen", "epoch", "watermark"):
        expect(page.locator(f"#panel-{chart} path.line").first).to_have_attribute("d", DATA)
    for lanes in ("faults", "nodes", "leader", "isr", "clients"):
        expect(page.locator(f"#panel-{lanes} rect.bar")).not_to_have_count(0)
    page.locator("#panel-throughput .plot").hover()
    expect(page.locator("#now")).to_contain_text(" s")
    expect(page.locator("[data-value='throughput:0']")).to_contain_text("/s")
    expect(page.locator("[data-value='leader:0']")).to_have_text(re.compile("1|2|3|none"))


def test_a_fault_zooms_all_charts_and_back(page: Page) -> None:
    whole = view_box(page, "throughput")
    page.locator("#fault-3 [data-zoom]").click()
    zoomed = view_box(page, "throughput")
    assert zoomed[2] < whole[2] / 2
    assert view_box(page, "latency") == zoomed
    page.get_by_role("button", name="Show the whole run").click()
    assert view_box(page, "throughput") == whole


def test_a_stretch_of_a_chart_is_zoomed_by_dragging(page: Page) -> None:
    plot = page.locator("#panel-throughput .plot")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    whole = view_box(page, "throughput")
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 20)
    page.mouse.up()
    left, _, width, _ = view_box(page, "throughput")
    assert abs(left / whole[2] - 0.25) < 0.02
    assert abs(width / whole[2] - 0.25) < 0.02


def test_evidence_leads_to_its_fault_and_its_time(page: Page) -> None:
    page.locator("#finding-1 summary a").click()
    assert view_box(page, "throughput")[2] == 400
    expect(page.locator("#finding-1 .ops li")).to_have_count(2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_screen_shows_all_without_scrolling_sideways(browser: Browser, address: str, scheme: str) -> None:
    context = browser.new_context(
        viewport={"width": 400, "height": 800}, color_scheme="dark" if scheme == "dark" else "light"
    )
    page = context.new_page()
    page.goto(address)
    expect(page.locator("#verdict")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    context.close()


def test_without_its_script_the_page_has_everything_but_zooming(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    expect(page.locator("#verdict")).to_have_text("1 anomaly")
    expect(page.locator("#panel-throughput path.line").first).to_have_attribute("d", DATA)
    expect(page.locator("#ticks span")).not_to_have_count(0)
    expect(page.locator("#tools button")).to_have_count(0)
    context.close()


def test_a_run_of_ten_minutes_has_a_page_below_three_megabytes(tmp_path: Path) -> None:
    make_run_folder(tmp_path, duration_s=600, partitions=12, rate=6)
    assert CliRunner().invoke(report, [str(tmp_path)]).exit_code == 0
    assert (tmp_path / "report.html").stat().st_size < 3_000_000
