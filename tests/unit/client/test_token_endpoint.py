"""Tokens of an issuer that gives them to programs with a secret."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import click
import pytest

from penstock.client.client_login import sasl_login
from penstock.client.client_properties import librdkafka_properties

SECRET = "hunter2/ä"
GIVEN = b'{"access_token": "abc.def.ghi", "token_type": "bearer"}'


class Issuer(ThreadingHTTPServer):
    """Answers every request with what it is told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.body, self.location = 200, GIVEN, ""
        self.asked: list[tuple[str, str, dict[str, list[str]]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/token"


class Handler(BaseHTTPRequestHandler):
    server: Issuer

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
        self.server.asked.append((self.path, self.headers.get("Authorization", ""), parse_qs(form)))
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body)))
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.end_headers()
        self.wfile.write(self.server.body)

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as server, ThreadPoolExecutor(1) as pool:
        pool.submit(server.serve_forever, 0.01)
        yield server
        server.shutdown()


def properties(url: str, **own: str) -> dict[str, str]:
    """As Apache Kafka's clients have them."""
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    return librdkafka_properties(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.jaas.config": f'{module} required clientId="ada" clientSecret="{SECRET}" scope="read write";',
            "sasl.oauthbearer.token.endpoint.url": url,
            **own,
        }
    )


def test_an_issuer_gives_a_token_for_the_secret(issuer: Issuer) -> None:
    login = sasl_login(properties(issuer.url))
    assert (login.mechanism, login.secret) == ("OAUTHBEARER", "abc.def.ghi")
    ((path, authorization, form),) = issuer.asked
    assert path == "/token"
    assert base64.b64decode(authorization.removeprefix("Basic ")) == b"ada:hunter2%2F%C3%A4"
    assert form == {"grant_type": ["client_credentials"], "scope": ["read write"]}


@pytest.mark.parametrize(
    ("status", "body", "clause"),
    [
        (401, b"{}", "it answers 401 Unauthorized"),
        (200, b"{}", "its answer has no access_token"),
        (200, b"[" * 100_000, "its answer has no access_token"),
        (200, b'{"access_token": "a b"}', "its access_token is no token"),
        (200, b'{"access_token": "a\\r\\nX-Other: b"}', "its access_token is no token"),
        (200, b'{"access_token": 7}', "its access_token is no token"),
    ],
)
def test_what_is_no_token_is_said_without_the_secret(issuer: Issuer, status: int, body: bytes, clause: str) -> None:
    issuer.status, issuer.body = status, body
    with pytest.raises(click.ClickException) as refused:
        sasl_login(properties(issuer.url))
    named = "sasl.oauthbearer.token.endpoint.url"
    assert refused.value.message == f"The issuer that {named} names gives no token: {clause}."


def test_the_secret_goes_to_no_other_address(issuer: Issuer) -> None:
    issuer.status, issuer.location = 302, f"{issuer.url}/elsewhere"
    with pytest.raises(click.ClickException, match="it answers 302"):
        sasl_login(properties(issuer.url))
    assert [path for path, _, _ in issuer.asked] == ["/token"]


def test_an_issuer_that_is_not_there_is_said(issuer: Issuer) -> None:
    with pytest.raises(click.ClickException, match="its URL is neither http nor https"):
        sasl_login(properties("ftp://127.0.0.1/token"))
    told = properties(issuer.url) | {"sasl.oauthbearer.client.secret": ""}
    with pytest.raises(click.ClickException, match=r"sasl\.oauthbearer\.client\.secret is not set"):
        sasl_login(told)
    del told["sasl.oauthbearer.token.endpoint.url"]
    with pytest.raises(click.ClickException, match="must name the issuer"):
        sasl_login(told)
