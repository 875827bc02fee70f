"""The raw connection against brokers that behave and brokers that do not."""

import asyncio
import re
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
import uvloop
from echo_node import LOOPS, contexts
from kio.schema.api_versions.v0 import response as api_versions_0
from kio.schema.delete_topics.v6 import DeleteTopicsRequest
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.metadata.v13 import MetadataRequest
from kio.schema.metadata.v13 import MetadataResponse as MetadataResponse13
from scripted_broker import Answer, api_versions_answer, behaved, metadata_answer, run

from penstock.client.connection import Connection, connect
from penstock.protocol.apis import ApiKey
from penstock.protocol.errors import CorruptData, ErrorCode, KafkaError
from penstock.protocol.messages import RequestHeader, encode_response

QUESTION = MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False)


def test_the_highest_version_that_both_sides_know_is_used() -> None:
    async def scenario(host: str, port: int) -> None:
        async with await connect(host, port) as connection:
            assert connection.versions == {3: (0, 9), 18: (0, 4)}
            assert isinstance(await connection.call(QUESTION), MetadataResponse13)
            assert connection.is_open
        assert not connection.is_open

    heard = run(behaved({3: (0, 9), 18: (0, 4)}), scenario)
    assert [(header.api_key, header.api_version) for header in heard] == [(18, 4), (3, 9)]


def test_a_broker_that_refuses_the_question_for_versions_is_asked_in_version_0() -> None:
    def answer(header: RequestHeader) -> bytes:
        if header.api_version > 0:
            refusal = api_versions_0.ApiVersionsResponse(error_code=KioErrorCode.unsupported_version, api_keys=())
            return encode_response(ApiKey.API_VERSIONS, 0, header.correlation_id, refusal)
        return api_versions_answer(header, {18: (0, 0)})

    async def scenario(host: str, port: int) -> None:
        async with await connect(host, port) as connection:
            assert connection.versions == {18: (0, 0)}

    assert [header.api_version for header in run(answer, scenario)] == [4, 0]


@pytest.mark.parametrize("versions", [{18: (0, 4)}, {18: (0, 4), 20: (7, 9)}])
def test_an_api_without_a_common_version_is_refused_before_it_is_sent(versions: dict[int, tuple[int, int]]) -> None:
    async def scenario(host: str, port: int) -> None:
        async with await connect(host, port) as connection:
            with pytest.raises(KafkaError, match="DeleteTopics") as refused:
                connection.version_for(DeleteTopicsRequest(topics=(), timeout=None))  # type: ignore[arg-type]
            assert refused.value.code == ErrorCode.UNSUPPORTED_VERSION
            assert connection.is_open

    run(behaved(versions), scenario)


def scenario_that_fails(error: type[Exception], match: str) -> Callable[[str, int], Awaitable[None]]:
    async def scenario(host: str, port: int) -> None:
        connection: Connection = await connect(host, port)
        with pytest.raises(error, match=match):
            await connection.call(QUESTION, timeout_ms=200)
        assert not connection.is_open

    return scenario


def answering(metadata: Callable[[RequestHeader], bytes | None]) -> Answer:
    good = behaved({3: (0, 13), 18: (0, 4)})
    return lambda header: good(header) if header.api_key == ApiKey.API_VERSIONS else metadata(header)


def test_a_broker_that_hangs_up_is_named() -> None:
    run(answering(lambda _: None), scenario_that_fails(ConnectionError, r"127\.0\.0\.1:\d+ closed .* Metadata v13"))


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_connection_that_is_closed_is_gone(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def scenario(host: str, port: int) -> None:
        connection = await connect(host, port)
        await connection.close()
        with pytest.raises(ConnectionError, match=f"{host}:{port} is gone, Metadata v9 was not answered"):
            await connection.call(QUESTION)

    run(behaved({3: (0, 9), 18: (0, 4)}), scenario, new_loop)


def test_an_answer_past_the_deadline_is_a_timeout() -> None:
    run(answering(lambda _: b""), scenario_that_fails(TimeoutError, "Metadata v13 within 200 ms"))


def test_a_request_that_is_given_up_before_its_turn_leaves_the_connection_to_the_one_before_it() -> None:
    async def scenario(host: str, port: int) -> None:
        async with await connect(host, port) as connection:
            first = asyncio.ensure_future(connection.call(QUESTION))
            second = asyncio.ensure_future(connection.call(QUESTION))
            # Both have begun: the first is on its way, the second waits.
            await asyncio.sleep(0)
            second.cancel()
            assert isinstance(await first, MetadataResponse13)
            assert second.cancelled()
            assert isinstance(await connection.call(QUESTION), MetadataResponse13)

    heard = run(behaved({3: (0, 13), 18: (0, 4)}), scenario)
    assert [header.api_key for header in heard] == [18, 3, 3]


def test_a_foreign_correlation_id_is_corrupt() -> None:
    run(
        answering(lambda header: metadata_answer(header._replace(correlation_id=99))),
        scenario_that_fails(CorruptData, "correlation id 99"),
    )


def test_an_answer_that_cannot_be_read_is_corrupt() -> None:
    run(
        answering(lambda header: struct.pack(">ii", 6, header.correlation_id) + b"\0\0"),
        scenario_that_fails(CorruptData, "Metadata response v13"),
    )


def test_a_peer_that_speaks_something_else_is_corrupt() -> None:
    run(answering(lambda _: b"HTTP/1.1 400 Bad Request\r\n"), scenario_that_fails(CorruptData, "does not speak Kafka"))


def test_a_closed_port_is_a_connection_error_with_the_address() -> None:
    async def scenario(host: str, port: int) -> None:
        server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
        (_, free_port) = server.sockets[0].getsockname()
        server.close()
        await server.wait_closed()
        with pytest.raises(ConnectionError, match=f"no connection to 127.0.0.1:{free_port}"):
            await connect(host, free_port)

    run(behaved({}), scenario)


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("host", ["..", "a" * 64 + ".invalid", "ü" * 64, "\0"], ids=ascii)
def test_a_name_that_no_machine_can_have_is_a_connection_error(
    host: str, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """Other nodes say where they are, and one that is configured wrongly takes no other down."""

    async def scenario() -> None:
        with pytest.raises(ConnectionError, match=f"no connection to {re.escape(host)}:9092: "):
            await connect(host, 9092)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(scenario())


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("turns", range(8))
def test_a_broker_that_dies_at_any_moment_of_the_connecting_is_a_connection_error(
    turns: int, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """One of these moments is between the connecting and the question where the socket is connected to."""

    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            host, port = listener.getsockname()
            connecting = asyncio.ensure_future(connect(host, port))
            for _ in range(turns):
                await asyncio.sleep(0)
            listener.setblocking(False)
            # Accepted and reset; before the connecting has begun it is refused.
            with suppress(BlockingIOError):
                accepted, _ = listener.accept()
                accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                accepted.close()
            listener.close()
            with pytest.raises(ConnectionError, match=f"{host}:{port}"):
                async with asyncio.timeout(10):
                    await connecting

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(scenario())


@pytest.mark.thorough
@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_peer_that_stands_still_does_not_hold_up_the_end_of_a_connection(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """In TLS Python would wait half a minute for its goodbye."""
    server_tls, client_tls = contexts()

    async def main() -> None:
        held: list[asyncio.StreamWriter] = []

        def stand_still(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            held.append(writer)
            writer.transport.pause_reading()  # type: ignore[attr-defined]

        server = await asyncio.start_server(stand_still, "127.0.0.1", 0, ssl=server_tls)
        port = server.sockets[0].getsockname()[1]
        async with asyncio.timeout(15):
            with pytest.raises(TimeoutError, match="did not answer"):
                await connect("127.0.0.1", port, timeout_ms=100, tls=client_tls)
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_tls)
            await Connection(reader, writer, peer="it", client_id="", timeout_ms=100).close()
        for one in held:
            one.transport.abort()
        server.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())
