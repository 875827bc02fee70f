"""Hostile HTTP at a node that knows identities: nothing is shown to, done for or kept of a client without a proof."""

from __future__ import annotations

import base64
import json
import re
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import pytest

from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

SECRET: Final = b"never-shown-7"
PROPERTIES: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "listener.name.admin.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.admin.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'user_alice="wonder land" user_admin="{SECRET.decode()}";',
    "connection.failed.authentication.delay.ms": "0",
}
_PROOF: Final = base64.b64encode(b"admin:" + SECRET)
PROVED: Final = b"Authorization: Basic " + _PROOF + b"\r\n"
WRONG: Final = b"Authorization: Basic " + base64.b64encode(b"admin:wrong") + b"\r\n"
ALICE: Final = b"Authorization: Basic " + base64.b64encode(b"alice:wonder land") + b"\r\n"
HOST: Final = b"Host: localhost\r\n"
JSON: Final = b"Content-Type: application/json\r\n"
CREATION: Final = b'{"topic_name":"smuggled"}'
DEADLINE_S: Final = 20


class Door:
    """The HTTP administration of one node, by bytes."""

    def __init__(self, cluster: LocalCluster) -> None:
        (self.node,) = cluster.nodes.values()
        host, _, port = str(self.node.admin).removeprefix("http://").partition(":")
        self._address = (host, int(port))
        answer = self.exchange(b"GET /v3/clusters HTTP/1.1\r\n" + HOST + PROVED + b"\r\n")
        found = re.search(rb'"cluster_id":"([^"]+)"', answer)
        assert found is not None, answer
        self.topics = b"/v3/clusters/" + found[1] + b"/topics"

    def connect(self) -> socket.socket:
        return socket.create_connection(self._address, timeout=DEADLINE_S)

    def exchange(self, request: bytes) -> bytes:
        """All that is answered until the node closes. The last request is one that has it close."""
        with self.connect() as connection:
            # What is answered before all has come closes the connection while it is sent.
            with suppress(ConnectionError):
                connection.sendall(request + b"GET /health HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n")
            answer = b""
            with suppress(ConnectionError):
                while chunk := connection.recv(65_536):
                    answer += chunk
            return answer

    def statuses(self, request: bytes) -> list[int]:
        """The last one may be that of `exchange`'s own request."""
        return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3}) ", self.exchange(request))]

    def creation(self, *headers: bytes, body: bytes = CREATION) -> bytes:
        """The creation of a topic, with its length."""
        return self.posted(*headers, b"Content-Length: %d\r\n" % len(body), body=body)

    def posted(self, *headers: bytes, body: bytes = CREATION, version: bytes = b"1.1") -> bytes:
        return b"POST %s HTTP/%s\r\n%s\r\n%s" % (self.topics, version, HOST + JSON + b"".join(headers), body)

    def names(self) -> list[str]:
        """The topics that there are."""
        request = urllib.request.Request(f"{self.node.admin}{self.topics.decode()}")
        request.add_header("Authorization", f"Basic {_PROOF.decode()}")
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            return [topic["topic_name"] for topic in json.loads(answer.read())["data"]]


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with LocalCluster(tmp_path_factory.mktemp("hostile") / "cluster", properties=PROPERTIES) as cluster:
        one = Door(cluster)
        yield one
        # After all of it, in whatever order: nothing was done, and no log has the password.
        assert one.names() == []
        log = one.node.log.read_bytes()
        assert SECRET not in log
        assert _PROOF not in log
        assert b"Traceback" not in log


def test_two_readings_of_where_a_request_ends_are_none(door: Door) -> None:
    hidden = door.creation(PROVED)
    length = b"Content-Length: %d\r\n" % len(hidden)
    chunked = b"Transfer-Encoding: chunked\r\n"
    for headers, body in (
        (b"Content-Length: 0\r\n" + length, hidden),
        (length + b"Content-Length: 0\r\n", hidden),
        (length + length, hidden),
        (b"Content-Length: 0, %d\r\n" % len(hidden), hidden),
        (b"Content-Length: +%d\r\n" % len(hidden), hidden),
        (b"Content-Length: -1\r\n", hidden),
        (b"Content-Length: 0x10\r\n", hidden),
        (b"Content-Length: 99999999999999999999999\r\n", hidden),
        (b"Content-Length : 0\r\n", hidden),
        (length + chunked, b"0\r\n\r\n" + hidden),
        (chunked + b"Content-Length: 5\r\n", b"0\r\n\r\n" + hidden),
        (b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n" + hidden),
        (b"Transfer-Encoding: chunked, identity\r\n", b"0\r\n\r\n" + hidden),
        (chunked + b"Transfer-Encoding: identity\r\n", b"0\r\n\r\n" + hidden),
        (b"Transfer-Encoding:\x0bchunked\r\n", b"0\r\n\r\n" + hidden),
        (chunked, b"-1\r\n" + hidden),
        (chunked, b"fffffffffffffffff\r\n" + hidden),
        (chunked, b"5 \n" + hidden),
    ):
        statuses = door.statuses(door.posted(headers, body=body))
        # What cannot be read, or a refusal for want of a proof before; then the connection is closed.
        assert statuses in ([400], [401], [401, 400]), (headers, statuses)
    assert door.names() == []


def test_a_body_is_a_body_whatever_it_looks_like(door: Door) -> None:
    hidden = door.creation(PROVED)
    assert door.statuses(door.creation(body=hidden)) == [401, 200]
    assert door.statuses(door.creation(ALICE, body=hidden)) == [400, 200]
    chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(hidden), hidden)
    assert door.statuses(door.posted(b"Transfer-Encoding: chunked\r\n", body=chunk)) == [401, 200]
    # HTTP/1.0 has no chunks: where the body ends is not known, and nothing behind it is carried out.
    assert door.statuses(door.posted(b"Transfer-Encoding: chunked\r\n", body=chunk, version=b"1.0")) in ([400], [401])


@pytest.mark.parametrize(
    "headers",
    [
        PROVED + PROVED,
        PROVED + WRONG,
        WRONG + PROVED,
        WRONG[:-2] + b", Basic " + _PROOF + b"\r\n",
        PROVED[:-2] + b", x\r\n",
        b"Authorization: Basic\r\n " + _PROOF + b"\r\n",
        b"X: a\r\n " + PROVED,
        b"X: a\r" + PROVED,
        b"X: a\0" + PROVED,
        PROVED[:-2] + b"\0\r\n",
        PROVED[:-2] + b"x" * 8_001 + b"\r\n",
        PROVED[:-2] + b"x" * 1_000_000 + b"\r\n",
        PROVED.replace(b":", b" :", 1),
        PROVED.replace(b" ", b"\t", 2),
        PROVED.replace(b"Authorization", b"Autho\0rization"),
        PROVED.replace(b"Authorization", b"Proxy-Authorization"),
        PROVED.replace(b"Authorization", b"X-Authorization"),
        b"Authorization: Basic \xff\xfe\r\n",
        b"Authorization: Bearer \xff\xfe\r\n",
        b"Authorization: Bearer " + _PROOF + b"\r\n",
        b"Authorization:\r\n",
        b"X-Forwarded-User: admin\r\nX-Remote-User: admin\r\n",
        b"Cookie: user=admin\r\n",
    ],
)
def test_a_header_that_is_not_whole_and_single_proves_nothing(door: Door, headers: bytes) -> None:
    answer = door.exchange(door.creation(headers))
    status = int(answer[9:12])
    assert status in (400, 401)
    assert (b"WWW-Authenticate: Basic " in answer) == (status == 401)
    # Who reads answers of others, a proxy for instance, reads no password in them.
    assert _PROOF not in answer
    assert door.names() == []


def test_what_cannot_be_read_is_answered_as_a_problem_without_being_quoted(door: Door) -> None:
    for request in (
        b"GET /v3/clusters HTTP/1.1\n" + PROVED.replace(b"\r", b""),
        b"GET /v3/clusters HTTP/9.9\r\n" + PROVED,
        b"get / HTTP/1.1\r\n" + PROVED,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + PROVED,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + PROVED,
        b"GET / HTTP/1.1\r\n" + PROVED * 65,
    ):
        answer = door.exchange(request + b"\r\n")
        assert answer.startswith(b"HTTP/1.0 400 "), answer
        assert b"Content-Type: application/problem+json\r\n" in answer
        assert _PROOF not in answer


@pytest.mark.parametrize(
    "target",
    [
        b"/health/../v3/clusters",
        b"/health/%2e%2e/v3/clusters",
        b"/metrics/..%2fv3/clusters",
        b"/openapi.json/../v3/clusters",
        b"//v3/clusters",
        b"/v3//clusters",
        b"/./v3/clusters",
        b"/V3/clusters",
        b"/v3/clusters/",
        b"/v3/clusters;/health",
        b"/v3/clusters?/health",
        b"/v3/clusters#/health",
        b"/v3/clusters%3f/health",
        b"/v3%2fclusters",
        b"/%76%33/clusters",
        b"/v3/%63lusters",
        b"/%2576%2533/clusters",
        b"http://localhost/v3/clusters",
        b"http://evil/v3/clusters",
        b"http://user:password@localhost/v3/clusters",
        b"https://localhost:1/v3/clusters",
        b"HTTP://evil:99999999/health/v3/clusters",
        b"/page/..%2f..%2f..%2f..%2fetc%2fpasswd",
        b"/page/%2e%2e/%2e%2e/etc/passwd",
        b"/kafka/../v3/clusters",
        b"/kafka/v3/clusters",
        b"/kafka//v3/clusters",
        b"/v1/events",
        b"/%ff%fe",
        b"/health%00/../v3/clusters",
        b"*",
    ],
)
def test_no_path_leads_past_the_proof(door: Door, target: bytes) -> None:
    for method in (b"GET", b"HEAD", b"OPTIONS", b"POST"):
        request = b"%s %s HTTP/1.1\r\n%s%sX-HTTP-Method-Override: GET\r\nX-Original-URL: /health\r\n\r\n"
        answer = door.exchange(request % (method, target, HOST, JSON))
        assert int(answer[9:12]) in (400, 401, 404, 405), (method, answer)
        assert b"cluster_id" not in answer
        assert b"root:" not in answer


def test_no_path_leads_to_a_topic_by_the_permission_for_another(door: Door) -> None:
    """Alice may do nothing: what she is told does not depend on what there is."""
    for name in (b"mine", b"..", b"%2e%2e", b"mine%2f..%2fother", b"mine/../other", b"-", b"%2d", b"mine%00", b"%ff"):
        for path in (name, name + b"/partitions", name + b"/configs", name + b"/partitions/0/records"):
            statuses = door.statuses(b"GET %s/%s HTTP/1.1\r\n%s%s\r\n" % (door.topics, path, HOST, ALICE))
            assert statuses[0] in (403, 404), (path, statuses)


def test_a_body_is_not_waited_for_before_the_proof(door: Door) -> None:
    """The answer is there before the body, however slowly that comes, and asks for none of it."""
    for headers in (b"Content-Length: 1000000000\r\n", b"Transfer-Encoding: chunked\r\n"):
        for expect in (b"", b"Expect: 100-continue\r\n"):
            with door.connect() as connection:
                connection.sendall(door.posted(WRONG, headers, expect, body=b""))
                assert connection.recv(65_536).startswith(b"HTTP/1.1 401 ")
    with door.connect() as connection:
        body = b'{"topic_name": ""}'
        connection.sendall(door.posted(PROVED, b"Expect: 100-continue\r\nContent-Length: %d\r\n" % len(body), body=b""))
        assert connection.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 400 ")
    assert door.statuses(door.posted(PROVED, b"Expect: more\r\nContent-Length: 0\r\n", body=b""))[0] == 417


def test_a_body_behind_a_refusal_is_not_read_for_ever(door: Door) -> None:
    """A client without a proof that goes on sending is cut off."""
    with door.connect() as connection:
        connection.sendall(door.posted(b"Content-Length: 100000000000\r\n", body=b""))
        assert connection.recv(65_536).startswith(b"HTTP/1.1 401 ")
        connection.settimeout(DEADLINE_S)
        is_cut_off = False
        while not is_cut_off:
            try:
                connection.sendall(b"x" * 65_536)
            except ConnectionError:
                is_cut_off = True
