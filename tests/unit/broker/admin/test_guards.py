"""Which HTTP requests are answered: DNS rebinding and pages of other sites are kept out."""

import pytest

from penstock.broker.admin.rules.guards import refusal_of

KNOWN = frozenset({"localhost", "node-1.example"})


def status_of(
    method: str = "GET",
    *,
    host: str | None = "localhost:8083",
    origin: str | None = None,
    content: str | None = None,
    site: str | None = None,
    mode: str | None = None,
) -> int | None:
    refusal = refusal_of(
        method,
        host=host,
        origin=origin,
        content_type=content,
        known_hosts=KNOWN,
        fetch_site=site,
        fetch_mode=mode,
    )
    return None if refusal is None else refusal.status


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8083", "127.0.0.1", "10.1.2.3:80", "[::1]:8083", "[::1]", "node-1.example.:1"]
)
def test_addresses_and_known_names_are_served(host: str) -> None:
    assert status_of(host=host) is None


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "localhost:x",
        "[::1",
        "[::1]x:1",
        "[::1]x1",
        "localhost:\u0661",
    ],
)
def test_a_name_that_someone_made_point_here_is_not_served(host: str | None) -> None:
    assert status_of(host=host) == 421


def test_a_page_of_this_node_may_ask() -> None:
    assert status_of(origin="http://localhost:8083") is None


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:9999", "http://localhost"])
def test_a_page_of_another_site_may_not(origin: str) -> None:
    assert status_of(origin=origin) == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
@pytest.mark.parametrize("content", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonp"])
def test_a_write_needs_what_no_form_can_send(method: str, content: str | None) -> None:
    assert status_of(method, content=content) == 415


@pytest.mark.parametrize("content", ["application/json", "Application/JSON; charset=utf-8"])
def test_a_write_of_json_is_served(content: str) -> None:
    assert status_of("POST", content=content) is None


def test_a_deletion_needs_no_content() -> None:
    assert status_of("DELETE") is None


@pytest.mark.parametrize("site", ["same-origin", "none", None])
def test_a_browser_on_a_page_of_this_node_is_served(site: str | None) -> None:
    assert status_of(site=site, mode="cors") is None
    assert status_of("DELETE", site=site, mode="cors") is None


@pytest.mark.parametrize("site", ["cross-site", "same-site", "other"])
def test_another_site_can_only_link_here(site: str) -> None:
    assert status_of(site=site, mode="navigate") is None
    for mode in ("no-cors", "cors", "websocket", None):
        assert status_of(site=site, mode=mode) == 403
    # A form of another site navigates, too.
    assert status_of("POST", site=site, mode="navigate", content="application/json") == 403
    assert status_of("DELETE", site=site, mode="navigate") == 403
