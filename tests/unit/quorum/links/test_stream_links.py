"""Links over real sockets: who gets in, what is closed, and what a voter is told."""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

import cbor2
import pytest
from quorum_node import ProtocolSniffer

from penstock.local.ports import find_free
from penstock.protocol.errors import CorruptData
from penstock.protocol.ids import NodeId
from penstock.quorum.links import stream_link, stream_links
from penstock.quorum.links.rules import refusals
from penstock.quorum.links.rules.link_frames import FrameReader, encode_frame
from penstock.quorum.links.rules.link_hello import PREFACE, DialerHello
from penstock.quorum.links.rules.peer_proof import NONCE_BYTES, PeerHello, decode_hello
from penstock.quorum.links.stream_links import StreamLinks

SECRET = b"what only the voters know"
HOST = "127.0.0.1"


class Heard:
    """What one voter's links told."""

    def __init__(self) -> None:
        self.up: list[int] = []
        self.down: list[int] = []
        self.gone: list[int] = []
        self.messages: list[tuple[int, bytes]] = []
        self.changed = asyncio.Event()

    def on_link_up(self, peer_id: int, directory_id: UUID) -> None:
        assert directory_id == UUID(int=peer_id)
        self.up.append(peer_id)
        self.changed.set()

    def on_link_down(self, peer_id: int) -> None:
        self.down.append(peer_id)
        self.changed.set()

    def on_peer_gone(self, peer_id: int) -> None:
        self.gone.append(peer_id)
        self.changed.set()

    def on_message(self, peer_id: int, data: bytes) -> None:
        if data == b"malformed":
            raise CorruptData("a message of no known kind")
        self.messages.append((peer_id, data))
        self.changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


class Identity(NamedTuple):
    """Who a voter says it is, and what it knows."""

    node_id: int
    cluster_id: str | None = "cluster"
    secret: bytes = SECRET

    def hello(self) -> PeerHello:
        nonce = Random().randbytes(NONCE_BYTES)
        return PeerHello(
            node_id=NodeId(self.node_id), directory_id=UUID(int=self.node_id), cluster_id=self.cluster_id, nonce=nonce
        )


class Side:
    """A voter's links with their listener."""

    def __init__(self, own: Identity, port: int, peers: dict[int, int]) -> None:
        self.loop = asyncio.get_running_loop()
        self.port = port
        self.heard = Heard()
        addresses = {NodeId(peer_id): (HOST, peer_port) for peer_id, peer_port in peers.items()}
        self.links = StreamLinks(addresses, hello=own.hello, secret=own.secret, loop=self.loop)
        self.server: asyncio.Server | None = None

    async def start(self) -> None:
        self.server = await self.loop.create_server(lambda: ProtocolSniffer(self.links), HOST, self.port)
        self.links.start(self.heard)

    async def stop(self) -> None:
        if self.server is not None:
            self.server.close()
        await self.links.stop()


async def pair(first: Identity, second: Identity) -> tuple[Side, Side]:
    ports = find_free(random.Random()), find_free(random.Random())
    one = Side(first, ports[0], {second.node_id: ports[1]})
    two = Side(second, ports[1], {first.node_id: ports[0]})
    await one.start()
    await two.start()
    return one, two


async def exchanged(port: int, *chunks: bytes) -> bytes:
    """Send the chunks and return all that comes until the other side closes."""
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        for chunk in chunks:
            writer.write(chunk)
        async with asyncio.timeout(20):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def test_messages_arrive_in_order_in_both_directions() -> None:
    async def test() -> None:
        one, two = await pair(Identity(1), Identity(2))
        await one.heard.until(lambda: one.heard.up == [2])
        await two.heard.until(lambda: two.heard.up == [1])
        for number in range(100):
            one.links.send(NodeId(2), b"%d" % number)
            two.links.send(NodeId(1), bytes(100_000))
        await two.heard.until(lambda: len(two.heard.messages) == 100)
        await one.heard.until(lambda: len(one.heard.messages) == 100)
        assert two.heard.messages == [(1, b"%d" % number) for number in range(100)]
        await one.stop()
        await two.heard.until(lambda: two.heard.down == [1] and two.heard.gone == [1])
        await two.stop()

    asyncio.run(asyncio.wait_for(test(), 60))


def test_a_dial_that_fails_unexpectedly_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    dial = StreamLinks._dial
    failed: list[int] = []

    async def fail_once(links: StreamLinks, peer_id: int) -> Any:
        if len(failed) < 2:
            failed.append(peer_id)
            raise MemoryError
        return await dial(links, NodeId(peer_id))

    async def test() -> None:
        monkeypatch.setattr(StreamLinks, "_dial", fail_once)
        one, two = await pair(Identity(1), Identity(2))
        await one.heard.until(lambda: one.heard.up == [2])
        await two.heard.until(lambda: two.heard.up == [1])
        assert sorted(failed) == [1, 2]
        await one.stop()
        await two.stop()

    asyncio.run(asyncio.wait_for(test(), 60))


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (Identity(2, cluster_id="another"), "belongs to cluster another, this node to cluster cluster"),
        (Identity(2, secret=b"guessed"), "does not know the secret"),
        (Identity(3), "which is no other voter"),
    ],
)
def test_a_stranger_is_turned_away_and_logged_once(
    other: Identity, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        port = find_free(random.Random())
        one = Side(Identity(1), port, {2: find_free(random.Random())})
        await one.start()
        for _ in range(3):
            hello = DialerHello(other.hello(), other.secret, NodeId(1))
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(PREFACE + encode_frame(hello.first))
            with contextlib.suppress(ConnectionError):
                if await reader.read(4_096):
                    # With another secret a stranger cannot know what to prove, so it says anything.
                    writer.write(encode_frame(bytes(32)))
                assert await reader.read() == b""
            writer.close()
        assert one.heard.messages == []
        assert one.heard.up == []
        await one.stop()

    with caplog.at_level(logging.WARNING, refusals.__name__):
        asyncio.run(asyncio.wait_for(test(), 60))
    assert sum(reason in record.getMessage() for record in caplog.records) == 1


def test_two_clusters_never_link() -> None:
    async def test() -> None:
        one, two = await pair(Identity(1), Identity(2, cluster_id="another"))
        logged = asyncio.Event()

        class Seen(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                if "belongs to cluster" in record.getMessage():
                    logged.set()

        seen = Seen()
        logging.getLogger(refusals.__name__).addHandler(seen)
        await asyncio.wait_for(logged.wait(), 20)
        logging.getLogger(refusals.__name__).removeHandler(seen)
        assert (one.heard.up, two.heard.up) == ([], [])
        await one.stop()
        await two.stop()

    asyncio.run(asyncio.wait_for(test(), 60))


def test_who_is_turned_away_learns_why(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        one, two = await pair(Identity(1), Identity(2, cluster_id="another"))
        told = asyncio.Event()

        class Seen(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                if "it refuses this node" in record.getMessage():
                    told.set()

        seen = Seen()
        logging.getLogger(refusals.__name__).addHandler(seen)
        await told.wait()
        logging.getLogger(refusals.__name__).removeHandler(seen)
        await one.stop()
        await two.stop()

    asyncio.run(asyncio.wait_for(test(), 60))
    told = [record.getMessage() for record in caplog.records if "it refuses this node" in record.getMessage()]
    assert told[0].endswith("belongs to cluster another, this node to cluster cluster") or told[0].endswith(
        "belongs to cluster cluster, this node to cluster another"
    )


def test_a_second_process_under_one_id_is_turned_away() -> None:
    """It has the secret, the cluster and the id of node 2, and another disk."""

    async def test() -> None:
        one, two = await pair(Identity(1), Identity(2))
        await one.heard.until(lambda: one.heard.up == [2])
        await two.heard.until(lambda: two.heard.up == [1])
        other = PeerHello(
            node_id=NodeId(2), directory_id=UUID(int=22), cluster_id="cluster", nonce=Random().randbytes(NONCE_BYTES)
        )
        answer = await exchanged(one.port, PREFACE + encode_frame(DialerHello(other, SECRET, NodeId(1)).first))
        assert b"at the address of node 2 is the one with directory" in answer
        two.links.send(NodeId(1), b"still here")
        await one.heard.until(lambda: one.heard.messages == [(2, b"still here")])
        assert one.heard.down == []
        await one.stop()
        await two.stop()

    asyncio.run(asyncio.wait_for(test(), 60))


@pytest.mark.parametrize(
    "hello",
    [
        [1, -1, bytes(16), "cluster", bytes(NONCE_BYTES)],
        [1, 2**31, bytes(16), "cluster", bytes(NONCE_BYTES)],
        [1, True, bytes(16), "cluster", bytes(NONCE_BYTES)],
        [1, 2, bytes(15), "cluster", bytes(NONCE_BYTES)],
        [1, 2, bytes(16), "cluster\n2026-01-01 a line of its own", bytes(NONCE_BYTES)],
        [1, 2, bytes(16), "c" * 200, bytes(NONCE_BYTES)],
        [1, 2, bytes(16), "cluster", bytes(NONCE_BYTES - 1)],
        [1, 2, bytes(16), "cluster", bytes(NONCE_BYTES), bytes(600)],
    ],
)
def test_a_hello_with_absurd_fields_is_none(hello: list[object]) -> None:
    with pytest.raises(CorruptData, match="expected the hello of a node"):
        decode_hello(cbor2.dumps(hello))


def test_unfinished_greetings_are_bounded_and_keep_no_client_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_links, "GREETINGS_MAX", 4)

    async def test() -> None:
        port = find_free(random.Random())
        one = Side(Identity(1), port, {2: find_free(random.Random())})
        await one.start()
        idle = [await asyncio.open_connection(HOST, port) for _ in range(stream_links.GREETINGS_MAX + 1)]
        for _, writer in idle:
            writer.write(PREFACE)
        with contextlib.suppress(ConnectionError):
            assert await idle[0][0].read() == b""
        two = Side(Identity(2), find_free(random.Random()), {1: port})
        await two.start()
        await two.heard.until(lambda: two.heard.up == [1])
        for _, writer in idle:
            writer.close()
        await one.stop()
        await two.stop()

    asyncio.run(asyncio.wait_for(test(), 60))


# A process that loads it ends.
PICKLE = b"cos\n_exit\n(I77\ntR."


@pytest.mark.parametrize(
    "bytes_after_preface",
    [
        b"\xff\xff\xff\xff",
        encode_frame(b"\xff\xff\xff"),
        encode_frame(cbor2.dumps([1, 2, 3])),
        encode_frame(cbor2.dumps({"id": 1})),
        encode_frame(PICKLE),
        PICKLE,
        encode_frame(bytes(1_000)),
        b"\x00\x10\x00\x00" + bytes(100),
    ],
)
def test_garbage_in_the_greeting_closes_the_connection(bytes_after_preface: bytes) -> None:
    async def test() -> None:
        port = find_free(random.Random())
        one = Side(Identity(1), port, {2: find_free(random.Random())})
        await one.start()
        assert await exchanged(port, PREFACE + bytes_after_preface) == b""
        await one.stop()

    asyncio.run(asyncio.wait_for(test(), 60))


def test_a_malformed_message_closes_the_link_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        one, two = await pair(Identity(1), Identity(2))
        await one.heard.until(lambda: one.heard.up == [2])
        one.links.send(NodeId(2), b"malformed")
        await one.heard.until(lambda: one.heard.up == [2, 2])
        assert one.heard.gone == []
        one.links.send(NodeId(2), b"good")
        await two.heard.until(lambda: two.heard.messages == [(1, b"good")])
        await one.stop()
        await two.stop()

    with caplog.at_level(logging.WARNING, refusals.__name__):
        asyncio.run(asyncio.wait_for(test(), 60))
    assert sum("a message of no known kind" in record.getMessage() for record in caplog.records) == 1


def test_what_a_slow_peer_is_owed_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_link, "MAX_BUFFERED_BYTES", 1_000_000)

    async def test() -> None:
        one, two = await pair(Identity(1), Identity(2))
        await one.heard.until(lambda: one.heard.up == [2])
        for _ in range(1_000):
            # The peer does not read meanwhile: this loop is busy here.
            one.links.send(NodeId(2), bytes(100_000))
        await one.heard.until(lambda: one.heard.down == [2])
        await one.heard.until(lambda: one.heard.up == [2, 2])
        await one.stop()
        await two.stop()

    asyncio.run(asyncio.wait_for(test(), 60))


def test_a_frame_is_held_as_it_comes_and_never_by_its_announced_length() -> None:
    reader = FrameReader(1_000)
    data = encode_frame(b"one") + encode_frame(b"two")
    found = []
    for byte in data:
        reader.feed(bytes([byte]))
        found += list(reader.frames())
    assert found == [b"one", b"two"]
    reader.feed(b"\x00\x00\x03\xe9")
    with pytest.raises(CorruptData, match="a frame of 1001 bytes, where 1000 are allowed"):
        list(reader.frames())


def test_a_process_that_ends_is_gone_and_one_that_only_breaks_its_links_is_not() -> None:
    async def test() -> None:
        one, two = await pair(Identity(1), Identity(2))
        await one.heard.until(lambda: one.heard.up == [2])
        await two.heard.until(lambda: two.heard.up == [1])
        # Node 2 lives on without its links: it still listens.
        await two.links.stop()
        await one.heard.until(lambda: one.heard.down == [2])
        two.links.start(two.heard)
        await one.heard.until(lambda: one.heard.up == [2, 2])
        assert one.heard.gone == []
        assert two.server is not None
        two.server.close()
        await two.links.stop()
        await one.heard.until(lambda: one.heard.gone == [2])
        await one.stop()

    asyncio.run(asyncio.wait_for(test(), 60))


@pytest.mark.parametrize(
    ("first_bytes", "expected"),
    [(b"", None), (PREFACE[:3], None), (PREFACE + b"x", True), (b"\x00\x00\x00\x10", False)],
)
def test_the_first_bytes_tell_a_link_from_a_request(first_bytes: bytes, expected: bool | None) -> None:
    assert StreamLinks.starts_link(first_bytes) is expected
