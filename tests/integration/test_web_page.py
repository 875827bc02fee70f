"""The web page in a browser: what a person does and sees, without a reload."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import chromium
from confluent_kafka import Producer
from playwright.sync_api import Browser, Page, expect

from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PATIENCE_MS = 60_000
LOCKED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "listener.name.admin.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.admin.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_admin="secret" user_alice="wonder land";',
}
PROPERTIES = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "200"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("cluster"), node_count=3, properties=PROPERTIES) as started:
        yield started


@pytest.fixture
def page(browser: Browser, cluster: LocalCluster) -> Iterator[Page]:
    """The page of node 1; an error in its scripts fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{cluster.nodes[1].admin}/")
    yield page
    context.close()
    assert errors == []


def create(page: Page, name: str, partitions: int) -> str:
    """By hand; returns the command that the page says does the same."""
    page.get_by_role("button", name="Create a topic").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill(name)
    dialog.get_by_label("Partitions").fill(str(partitions))
    command = dialog.locator(".command code").inner_text()
    dialog.get_by_role("button", name="Create").click()
    expect(dialog).to_have_count(0)
    return command


def test_a_topic_made_here_takes_records_and_moves_its_leaders_when_a_node_dies(
    page: Page, cluster: LocalCluster
) -> None:
    page.evaluate("window.isStillTheSame = true")
    assert create(page, "orders", 6) == "penstock topic create orders --partitions 6"
    cells = page.locator("[data-partition^='orders-']")
    expect(cells).to_have_count(6)
    page.goto(f"{cluster.nodes[1].admin}/#/topics/orders")
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for number in range(600):
        producer.produce("orders", str(number).encode(), partition=number % 6)
    assert producer.flush(60) == 0
    expect(page.locator("tbody tr").first).to_contain_text("0 – 100")
    page.goto(f"{cluster.nodes[1].admin}/#/cluster")

    led_by_3 = page.locator("[data-partition^='orders-'][data-leader='3']")
    expect(led_by_3).not_to_have_count(0)
    cluster.kill_node(3)
    expect(led_by_3).to_have_count(0)
    expect(page.locator("[data-node='3']")).to_contain_text("fenced")
    expect(page.locator(".happened")).to_contain_text("Node 3 is fenced")
    cluster.start_node(3)
    expect(page.locator("[data-node='3']")).to_contain_text("active")
    assert page.evaluate("window.isStillTheSame")


def test_a_page_whose_node_is_gone_says_so_and_comes_back(page: Page, cluster: LocalCluster) -> None:
    expect(page.get_by_role("status")).to_contain_text("live")
    cluster.kill_node(1)
    expect(page.get_by_role("status")).to_contain_text("cut off")
    expect(page.get_by_role("alert")).to_contain_text("What you see is of")
    cluster.start_node(1)
    expect(page.get_by_role("status")).to_contain_text("live")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_node_is_drained_and_undrained_and_a_refusal_is_told(page: Page) -> None:
    node = page.locator("[data-node='2']")
    node.get_by_role("button", name="Drain").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".command code")).to_have_text("penstock drain 2")
    dialog.get_by_role("button", name="Drain").click()
    expect(node).to_contain_text("drained")
    node.get_by_role("button", name="Undrain").click()
    page.get_by_role("dialog").get_by_role("button", name="Undrain").click()
    expect(node).to_contain_text("active")

    page.get_by_role("button", name="Create a topic").first.click()
    page.get_by_role("dialog").get_by_label("Name").fill("no such/name")
    page.get_by_role("dialog").get_by_role("button", name="Create").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("no such/name")


def test_every_view_is_reached_by_keys_and_fits_a_narrow_screen(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator("body").click(position={"x": 1, "y": 1})
    for key, title in enumerate(("Cluster", "Topics", "Groups", "Transactions", "Quorum", "Events"), start=1):
        page.keyboard.press(str(key))
        expect(page.get_by_role("link", name=title, exact=True)).to_have_attribute("aria-current", "page")
        expect(page.locator("main .sheet").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, title


def test_files_of_the_page_ask_no_other_host() -> None:
    folder = Path(__file__).resolve().parents[2] / "broker/admin/page"
    for file in folder.glob("*.*"):
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text, file.name
        assert "https://" not in text, file.name


def test_a_person_is_told_what_a_password_leads_to(browser: Browser, tmp_path: Path) -> None:
    expect.set_options(timeout=PATIENCE_MS)
    with LocalCluster(tmp_path, properties=LOCKED) as cluster:
        address = f"{cluster.nodes[1].admin}/"
        for user, password, told in (
            ("admin", "wrong", "not right"),
            ("alice", "wonder land", "User:alice may not DESCRIBE"),
            ("admin", "secret", "1 node"),
        ):
            context = browser.new_context(http_credentials={"username": user, "password": password})
            page = context.new_page()
            page.goto(address)
            expect(page.locator("#page")).to_contain_text(told)
            if password == "wrong":
                expect(page.get_by_role("status")).to_contain_text("not signed in")
                with page.expect_navigation(url=address):
                    page.get_by_role("button", name="Sign in").click()
            else:
                expect(page.get_by_role("button", name="Sign in")).to_have_count(0)
            context.close()
