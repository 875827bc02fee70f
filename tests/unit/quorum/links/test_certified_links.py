"""Links whose certificates prove who is at their ends, with a secret and without."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Callable
from pathlib import Path
from random import Random
from uuid import UUID

import pytest
from certificates import Authority
from quorum_node import ProtocolSniffer
from waiting import loop_until

from penstock.local.ports import find_free
from penstock.protocol.ids import NodeId
from penstock.quorum.links.rules import refusals
from penstock.quorum.links.rules.node_certificates import NodeCertificates
from penstock.quorum.links.rules.peer_proof import NONCE_BYTES, PeerHello
from penstock.quorum.links.stream_links import StreamLinks

AUTHORITY = Authority()
HOST = "127.0.0.1"


class Voter:
    """One of two, which counts who is linked to it."""

    def __init__(self, node_id: int, ports: dict[int, int], folder: Path, shown: str | None, secret: bytes) -> None:
        self.node_id = node_id
        self.port = ports[node_id]
        self.up: list[int] = []
        self.loop = asyncio.get_running_loop()
        self.server: asyncio.Server | None = None
        self.contexts = None if shown is None else _contexts(folder / f"{node_id}.pem", shown)
        self.links = StreamLinks(
            {NodeId(peer_id): (HOST, port) for peer_id, port in ports.items() if peer_id != node_id},
            hello=self._hello,
            secret=secret,
            loop=self.loop,
            certificates=NodeCertificates("cluster.certificate.name", "node-{id}"),
            tls=lambda: None if self.contexts is None else self.contexts[1],
        )

    def _hello(self) -> PeerHello:
        return PeerHello(
            node_id=NodeId(self.node_id),
            directory_id=UUID(int=self.node_id),
            cluster_id="cluster",
            nonce=Random().randbytes(NONCE_BYTES),
        )

    async def start(self) -> None:
        tls = None if self.contexts is None else self.contexts[0]
        self.server = await self.loop.create_server(lambda: ProtocolSniffer(self.links), HOST, self.port, ssl=tls)
        self.links.start(self)

    async def stop(self) -> None:
        await self.links.stop()
        assert self.server is not None
        self.server.close()

    def on_link_up(self, peer_id: int, _: UUID) -> None:
        self.up.append(peer_id)

    def on_link_down(self, peer_id: int) -> None: ...

    def on_peer_gone(self, peer_id: int) -> None: ...

    def on_message(self, peer_id: int, data: bytes) -> None:
        raise AssertionError(f"node {peer_id} sent {data!r}")


def _contexts(file: Path, shown: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Of the listener and of the dialing side, which show the same."""
    file.write_text(shown)
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.verify_mode = ssl.CERT_OPTIONAL
    for context in (server, client):
        context.load_cert_chain(file)
        context.load_verify_locations(cadata=AUTHORITY.certificate)
    return server, client


def run(
    folder: Path, second_shows: str | None, secrets: tuple[bytes, bytes], done: Callable[[Voter, Voter], bool]
) -> None:
    """Two voters, until `done`. Node 1 shows its own certificate, unless there is no TLS at all."""

    async def main() -> None:
        ports = {1: find_free(random.Random()), 2: find_free(random.Random())}
        first_shows = None if second_shows is None else AUTHORITY.issue_for_node(1)
        one = Voter(1, ports, folder, first_shows, secrets[0])
        two = Voter(2, ports, folder, second_shows, secrets[1])
        await one.start()
        await two.start()
        await loop_until(lambda: done(one, two), lambda: f"links of node 1 {one.up} and of node 2 {two.up}")
        await one.stop()
        await two.stop()

    asyncio.run(main())


@pytest.mark.parametrize("secret", [b"", b"what both know"])
def test_certificates_link_two_nodes(tmp_path: Path, secret: bytes) -> None:
    shown = AUTHORITY.issue_for_node(2)
    run(tmp_path, shown, (secret, secret), lambda one, two: (one.up, two.up) == ([2], [1]))


@pytest.mark.parametrize(
    ("shown", "secrets", "sentence"),
    [
        ("node-3", (b"", b""), "it says that it is node 2, but its certificate does not have the name node-2"),
        ("localhost", (b"known", b"known"), "it says that it is node 2, but its certificate does not have the name"),
        ("node-2", (b"known", b"other"), "does not know the secret of the cluster"),
        ("node-2", (b"known", b""), "does not know the secret of the cluster"),
        (None, (b"known", b"known"), "it says that it is node 2, but shows no certificate with the name node-2"),
    ],
)
def test_what_is_asked_for_must_all_hold(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, shown: str | None, secrets: tuple[bytes, bytes], sentence: str
) -> None:
    def is_refused(one: Voter, two: Voter) -> bool:
        assert (one.up, two.up) == ([], [])
        return any(sentence in record.getMessage() for record in caplog.records)

    certificate = None if shown is None else AUTHORITY.issue(shown, HOST)
    with caplog.at_level(logging.WARNING, refusals.__name__):
        run(tmp_path, certificate, secrets, is_refused)
