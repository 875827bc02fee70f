"""What the HTTP administration does around its operations: reading, bounds, problems."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import ssl
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from admin_http import puppet_ports, served
from aiohttp.http_exceptions import HttpProcessingError
from certificates import Authority
from msgspec import Struct
from waiting import loop_until

from penstock.broker.admin import application, http_server
from penstock.broker.admin.application import REQUESTS_MAX, make_application
from penstock.broker.admin.fair_pace import FairPace
from penstock.broker.admin.http_server import HttpServer
from penstock.broker.admin.operation import Answered, Call, HttpError, Operation, Stream
from penstock.broker.security.http_identities import HttpIdentity
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.structs import replace


class Query(Struct, kw_only=True):
    size: int = 7
    is_wanted: bool = False


class Body(Struct, kw_only=True):
    name: str
    count: int = 1


class Echo(Struct, kw_only=True):
    text: str


async def echo(call: Call) -> Echo:
    return Echo(text=repr((call.path, call.query, call.body)))


def operation(run: Any, method: str = "GET", path: str = "/x", **more: Any) -> Operation:
    return Operation(name="x", method=method, path=path, tag="t", summary="s", run=run, **more)


def run(test: Any) -> None:
    async def within() -> None:
        async with asyncio.timeout(30):
            await test(asyncio.get_running_loop())

    asyncio.run(within())


async def close_all(held: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]) -> None:
    for _, writer in held:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def test_path_query_and_body_reach_the_operation_by_their_types() -> None:
    async def test(loop: Any) -> None:
        one = operation(echo, "POST", "/topics/{topic_name}/{partition_id}", query=Query, body=Body, answer=Echo)
        async with served(loop, [one]) as client:
            answer = await client.post("/topics/a%2Fb/3?size=5&is_wanted=true", json={"name": "n"})
            assert answer.status == 200
            said = (await answer.json())["text"]
            assert said == repr(
                ({"topic_name": "a/b", "partition_id": 3}, Query(size=5, is_wanted=True), Body(name="n", count=1))
            )

    run(test)


def test_what_does_not_fit_the_types_is_a_problem_that_says_where() -> None:
    async def test(loop: Any) -> None:
        one = operation(echo, "POST", "/{partition_id}", query=Query, body=Body)
        async with served(loop, [one]) as client:
            for path, body, where in (
                ("/1?size=x", '{"name": "n"}', "$.size"),
                ("/1?other=1", '{"name": "n"}', "'other'"),
                ("/1?size=1&size=2", '{"name": "n"}', "2 times"),
                ("/1", "{}", "`name`"),
                ("/1", '{"name": 5}', "$.name"),
                ("/1", "{", "no JSON"),
                ("/1", "[" * 100_000, "array"),
                ("/1", "", "no JSON"),
            ):
                answer = await client.post(path, data=body, headers={"Content-Type": "application/json"})
                problem = await answer.json(content_type="application/problem+json")
                assert (answer.status, problem["status"]) == (400, 400)
                assert where in problem["detail"], problem
            assert (await client.post("/99999999999", json={"name": "n"})).status == 404
            assert (await client.get("/1")).status == 405
            assert (await client.get("/1/2/3")).status == 404

    run(test)


def test_head_has_the_headers_of_get_and_no_body() -> None:
    async def test(loop: Any) -> None:
        operations = [
            operation(echo, answer=Echo),
            operation(echo, "POST", "/y"),
            operation(echo, path="/s", is_stream=True),
        ]
        async with served(loop, operations) as client:
            whole = await client.get("/x")
            head = await client.head("/x")
            assert head.status == 200
            assert head.headers["Content-Type"] == whole.headers["Content-Type"]
            assert int(head.headers["Content-Length"]) == len(await whole.read())
            assert await head.read() == b""
            assert (await client.head("/none")).status == 404
            for path in ("/y", "/s"):
                assert (await client.head(path)).status == 405

    run(test)


def test_errors_of_kafka_keep_their_code_and_sentence() -> None:
    async def fail(_call: Call) -> None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no topic 'x'.")

    async def test(loop: Any) -> None:
        async with served(loop, [operation(fail)]) as client:
            answer = await client.get("/x")
            problem = await answer.json(content_type="application/problem+json")
            assert answer.status == 404
            assert problem["error_code"] == 3
            assert problem["title"] == "UNKNOWN_TOPIC_OR_PARTITION"
            assert problem["detail"] == problem["message"] == "There is no topic 'x'."

    run(test)


def test_a_bug_is_logged_and_told_without_its_inside(caplog: Any) -> None:
    async def fail(_call: Call) -> None:
        raise ZeroDivisionError("secret")

    async def test(loop: Any) -> None:
        async with served(loop, [operation(fail)]) as client:
            answer = await client.get("/x")
            assert answer.status == 500
            assert "secret" not in await answer.text()

    run(test)
    assert "HTTP request failed: method=GET path=/x" in caplog.text


def test_an_answer_may_have_another_status() -> None:
    async def teapot(_call: Call) -> Answered:
        return Answered(value=Echo(text="short"), status=202, headers={"Location": "/y"})

    async def test(loop: Any) -> None:
        async with served(loop, [operation(teapot, answer=Echo)]) as client:
            answer = await client.get("/x")
            assert (answer.status, answer.headers["Location"]) == (202, "/y")
            assert await answer.json() == {"text": "short"}

    run(test)


def test_so_many_requests_run_at_once_and_urgent_ones_beside_them() -> None:
    running = 0
    most = 0
    release = asyncio.Event()

    async def wait(_call: Call) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await release.wait()
        running -= 1

    async def health(_call: Call) -> Echo:
        return Echo(text="well")

    async def test(loop: Any) -> None:
        operations = [operation(wait), operation(health, path="/health", answer=Echo, is_urgent=True)]
        async with served(loop, operations) as client:
            waiting = [loop.create_task(client.get("/x")) for _ in range(REQUESTS_MAX + 8)]
            await loop_until(lambda: running == REQUESTS_MAX, "as many as may run")
            assert (await client.get("/health")).status == 200
            release.set()
            assert {(await answer).status for answer in waiting} == {204}
            assert most == REQUESTS_MAX

    run(test)


def test_a_body_that_is_too_large_is_refused_before_it_is_read() -> None:
    async def test(loop: Any) -> None:
        async with served(loop, [operation(echo, "POST", body=Body)]) as client:
            answer = await client.post(
                "/x", data=BytesIO(b" " * (5 * 1024 * 1024)), headers={"Content-Type": "application/json"}
            )
            assert answer.status == 413

    run(test)


def test_a_stream_ends_with_its_client() -> None:
    ended = asyncio.Event()

    async def ticks() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"tick\n"
                await asyncio.sleep(0)
        finally:
            ended.set()

    async def start(_call: Call) -> Stream:
        return Stream(media_type="text/plain", chunks=ticks())

    async def test(loop: Any) -> None:
        async with served(loop, [operation(start, is_stream=True)]) as client:
            answer = await client.get("/x")
            assert await answer.content.readline() == b"tick\n"
            answer.close()
            await ended.wait()

    run(test)


def test_a_stream_ends_with_the_proof_of_its_client() -> None:
    """A token, for instance, is valid until some time."""
    now_ms = 1_000

    class OfADay:
        challenges = ()

        async def identify(self, *_: object) -> HttpIdentity:
            return HttpIdentity(principal="User:ada", expiry_ms=2_000)

    async def ticks() -> AsyncIterator[bytes]:
        nonlocal now_ms
        for _ in range(5):
            yield b"tick\n"
            now_ms += 500

    async def start(_call: Call) -> Stream:
        return Stream(media_type="text/plain", chunks=ticks())

    async def test(loop: Any) -> None:
        identities: Any = OfADay()
        node = replace(puppet_ports(loop), identities=lambda: identities, wall_clock_ms=lambda: now_ms)
        async with served(loop, [operation(start, is_stream=True)], node) as client:
            answer = await client.get("/x")
            assert await answer.read() == b"tick\ntick\n"

    run(test)


def test_an_operation_may_refuse_by_a_status_of_http() -> None:
    async def refuse(_call: Call) -> None:
        raise HttpError(409, "Conflict", "It is being done already.")

    async def test(loop: Any) -> None:
        async with served(loop, [operation(refuse)]) as client:
            answer = await client.get("/x")
            problem = await answer.json(content_type="application/problem+json")
            assert (answer.status, problem["detail"]) == (409, "It is being done already.")

    run(test)


def test_a_header_that_decides_and_stands_twice_is_refused() -> None:
    async def test(loop: Any) -> None:
        async with served(loop, [operation(echo, answer=Echo)]) as client:
            for name in ("Origin", "Sec-Fetch-Site"):
                answer = await client.get("/x", headers=[(name, "none"), (name, "none")])
                assert answer.status == 400, name

    run(test)


def test_a_body_that_does_not_come_is_given_up(monkeypatch: Any) -> None:
    monkeypatch.setattr(application, "BODY_TIMEOUT_S", 0.05)

    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.get_running_loop().create_future()

    async def test(loop: Any) -> None:
        async with served(loop, [operation(echo, "POST", body=Body)]) as client:
            answer = await client.post("/x", data=never(), headers={"Content-Type": "application/json"})
            assert answer.status == 408

    run(test)


@pytest.mark.thorough
def test_streams_have_places_and_a_client_that_does_not_read_loses_its_own(monkeypatch: Any) -> None:
    monkeypatch.setattr(application, "STREAM_WRITE_TIMEOUT_S", 3.0)
    monkeypatch.setattr(application, "STREAMS_MAX", 2)
    ended = 0

    async def much() -> AsyncIterator[bytes]:
        nonlocal ended
        try:
            while True:
                yield bytes(1024 * 1024)
        finally:
            ended += 1

    async def start(_call: Call) -> Stream:
        return Stream(media_type="text/plain", chunks=much())

    async def test(loop: Any) -> None:
        async with served(loop, [operation(start, is_stream=True)]) as client:
            open_now = [await client.get("/x") for _ in range(2)]
            refused = await client.get("/x")
            assert refused.status == 503
            await loop_until(lambda: ended >= 2, "the streams that are not read end")
            assert (await client.get("/x")).status == 200
            for answer in (*open_now, refused):
                answer.close()

    run(test)


def test_the_error_of_what_is_no_http_does_not_hold_it() -> None:
    def holding() -> list[HttpProcessingError]:
        """Errors with a traceback, whose frames hold what was read; loggers of tests hold the errors."""
        errors = (one for one in gc.get_objects() if isinstance(one, HttpProcessingError))
        return [one for one in errors if one.__traceback__ is not None]

    async def test(loop: Any) -> None:
        async with served(loop, [operation(echo, answer=Echo)]) as client:
            url = client._base_url
            assert url is not None
            for _ in range(3):
                reader, writer = await asyncio.open_connection(url.host, url.port)
                # More than one read of the server has.
                writer.write(b"GET /x HTTP/1.1\r\nX: " + bytes(1024 * 1024))
                assert (await reader.readline()).startswith(b"HTTP/1.0 400 ")
                writer.close()
            await loop_until(lambda: holding() == [], "all of it is let go of")

    gc.disable()
    try:
        run(test)
    finally:
        gc.enable()


def test_who_holds_connections_does_not_keep_others_out(monkeypatch: Any) -> None:
    monkeypatch.setattr(http_server, "CONNECTIONS_MAX", 3)
    monkeypatch.setattr(http_server, "IDLE_S", 0.0)

    async def test(loop: Any) -> None:
        async with served(loop, [operation(echo, answer=Echo)]) as client:
            url = client._base_url
            assert url is not None
            held = [await asyncio.open_connection(url.host, url.port) for _ in range(5)]
            for _ in range(3):
                async with client.get("/x", headers={"Connection": "close"}) as answer:
                    assert answer.status == 200
            # The oldest made room.
            with contextlib.suppress(ConnectionError):
                assert await held[0][0].read() == b""
            await close_all(held)

    run(test)


def test_requests_that_wait_for_their_turn_do_not_keep_others_out(monkeypatch: Any) -> None:
    monkeypatch.setattr(http_server, "CONNECTIONS_MAX", 3)
    monkeypatch.setattr(http_server, "IDLE_S", 0.0)
    monkeypatch.setattr(application, "REQUESTS_PER_S", 0.001)
    waiting, wait = [], FairPace.wait

    async def noted_wait(pace: FairPace, peer_host: str) -> None:
        waiting.append(peer_host)
        await wait(pace, peer_host)

    monkeypatch.setattr(FairPace, "wait", noted_wait)

    async def test(loop: Any) -> None:
        operations = [operation(echo, answer=Echo), operation(echo, path="/urgent", answer=Echo, is_urgent=True)]
        async with served(loop, operations) as client:
            url = client._base_url
            assert url is not None
            # All of the burst.
            async with client.get("/x", headers={"Connection": "close"}) as answer:
                assert answer.status == 200
            held = [await asyncio.open_connection(url.host, url.port) for _ in range(3)]
            for _, writer in held:
                writer.write(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await loop_until(lambda: len(waiting) == 4, "all of them wait")
            async with client.get("/urgent", headers={"Connection": "close"}) as answer:
                assert answer.status == 200
            with contextlib.suppress(ConnectionError):
                assert await held[0][0].read() == b""
            await close_all(held)

    run(test)


def test_an_address_with_most_connections_makes_room_for_others_and_not_for_itself(monkeypatch: Any) -> None:
    monkeypatch.setattr(http_server, "CONNECTIONS_MAX", 4)
    monkeypatch.setattr(http_server, "IDLE_S", 1_000.0)

    async def test(loop: Any) -> None:
        async with served(loop, [operation(echo, answer=Echo)]) as client:
            url = client._base_url
            assert url is not None

            async def hostile() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
                return await asyncio.open_connection(url.host, url.port, local_addr=("127.0.0.2", 0))

            held = [await hostile() for _ in range(4)]
            # It stays open.
            async with client.get("/x") as answer:
                assert answer.status == 200
                await answer.read()
            with contextlib.suppress(ConnectionError):
                assert await held[0][0].read() == b""
            held += [await hostile() for _ in range(3)]
            for reader, _ in held[4:]:
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
            reader, writer = held[1]
            writer.write(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            async with client.get("/x") as answer:
                assert answer.status == 200
            await close_all(held)

    run(test)


@pytest.mark.parametrize(("stranger_host", "idle_s"), [("127.0.0.1", 0.0), ("127.0.0.2", 1_000.0)])
def test_who_holds_handshakes_of_tls_does_not_keep_others_out(
    monkeypatch: Any, tmp_path: Path, stranger_host: str, idle_s: float
) -> None:
    monkeypatch.setattr(http_server, "CONNECTIONS_MAX", 6)
    monkeypatch.setattr(http_server, "IDLE_S", idle_s)
    authority = Authority()
    file = tmp_path / "node.pem"
    file.write_text(authority.issue("localhost"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)

    async def test(loop: Any) -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        listening.setblocking(False)
        port = listening.getsockname()[1]
        one = operation(echo, answer=Echo)
        http = HttpServer(make_application(puppet_ports(loop), [one], frozenset({"localhost"})), loop, lambda: context)
        await http.start([listening], [listening])
        try:
            here = (stranger_host, 0)
            held = [await asyncio.open_connection("127.0.0.1", port, local_addr=here) for _ in range(8)]
            async with aiohttp.ClientSession() as client:
                for _ in range(3):
                    url, tls = f"https://localhost:{port}/x", authority.client_context(tmp_path)
                    async with client.get(url, ssl=tls, headers={"Connection": "close"}) as answer:
                        assert answer.status == 200
            # The oldest made room.
            with contextlib.suppress(ConnectionError):
                assert await held[0][0].read() == b""
            # What is no TLS is let go of.
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /x HTTP/1.1\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                assert not (await reader.read()).startswith(b"HTTP")
            for _, stranger in (*held, (reader, writer)):
                stranger.close()
                with contextlib.suppress(ConnectionError):
                    await stranger.wait_closed()
        finally:
            await http.stop()
            listening.close()

    run(test)
