"""Both clients of the HTTP administration, against a server in this process."""

from __future__ import annotations

import asyncio
import random
import runpy
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import NoneType
from typing import Any

import pytest
from admin_http import served
from msgspec import Struct

from penstock.broker.admin.operation import Call, Operation, Stream
from penstock.client.admin import Admin, AdminProblem, AdminUnreachable, AsyncAdmin
from penstock.client.admin.admin_address import parse_addresses
from penstock.client.admin.exchange import target
from penstock.local.ports import find_free
from penstock.protocol.errors import ErrorCode, KafkaError

ROOT = Path(__file__).resolve().parents[4]


class Echo(Struct, kw_only=True):
    text: str


async def _echo(call: Call) -> Echo:
    return Echo(text=f"{call.path} {call.query} {call.body}")


async def _refuse(_call: Call) -> None:
    raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'x' already exists.")


async def _lines() -> AsyncIterator[bytes]:
    for number in range(3):
        yield f"data: {number}\n".encode()


async def _stream(_call: Call) -> Stream:
    return Stream(media_type="text/event-stream", chunks=_lines())


def _operation(name: str, method: str, path: str, run: Any, **more: Any) -> Operation:
    return Operation(name=name, method=method, path=path, tag="t", summary="s", run=run, **more)


OPERATIONS = (
    _operation("echo", "POST", "/topics/{topic_name}", _echo, body=Echo, answer=Echo),
    _operation("refuse", "DELETE", "/topics/{topic_name}", _refuse),
    _operation("stream", "GET", "/events", _stream, is_stream=True),
)


class Asked:
    """One of the clients, asked in one way."""

    def __init__(self, url: str, *, is_async: bool) -> None:
        self.is_async = is_async
        self._client: Any = (AsyncAdmin if is_async else Admin)(url, timeout_s=30)

    async def ask(self, *arguments: Any) -> Any:
        if self.is_async:
            return await self._client.ask(*arguments)
        return await asyncio.get_running_loop().run_in_executor(None, lambda: self._client.ask(*arguments))

    async def lines(self) -> list[bytes]:
        if self.is_async:
            return [line async for line in self._client.stream("GET", "/events", {}, {}, None)]
        return await asyncio.get_running_loop().run_in_executor(
            None, lambda: list(self._client.stream("GET", "/events", {}, {}, None))
        )

    async def close(self) -> None:
        closing = self._client.close()
        if self.is_async:
            await closing


def _run(is_async: bool, test: Callable[[Asked], Any], url: Callable[[str], str] = lambda url: url) -> None:
    async def within() -> None:
        async with asyncio.timeout(60), served(asyncio.get_running_loop(), OPERATIONS) as session:
            client = Asked(url(str(session._base_url)), is_async=is_async)
            try:
                await test(client)
            finally:
                await client.close()

    asyncio.run(within())


both = pytest.mark.parametrize("is_async", [False, True])


@both
def test_values_go_there_and_back(is_async: bool) -> None:
    async def test(client: Asked) -> None:
        for _ in range(2):
            answer = await client.ask("POST", "/topics/{topic_name}", {"topic_name": "a/b ü"}, {}, Echo(text="t"), Echo)
            assert answer == Echo(text=f"{ {'topic_name': 'a/b ü'} } None {Echo(text='t')}")

    _run(is_async, test)


@both
def test_a_refusal_is_raised_with_the_error_of_kafka(is_async: bool) -> None:
    async def test(client: Asked) -> None:
        with pytest.raises(AdminProblem, match="Topic 'x' already exists") as raised:
            await client.ask("DELETE", "/topics/{topic_name}", {"topic_name": "x"}, {}, None, NoneType)
        assert raised.value.error is ErrorCode.TOPIC_ALREADY_EXISTS
        assert raised.value.status == 400
        with pytest.raises(AdminProblem) as raised:
            await client.ask("GET", "/nowhere", {}, {}, None, Echo)
        assert (raised.value.error, raised.value.status) == (None, 404)

    _run(is_async, test)


@both
def test_an_address_where_no_node_is_makes_the_next_one_answer(is_async: bool) -> None:
    gone = f"http://127.0.0.1:{find_free(random.Random())}"

    async def test(client: Asked) -> None:
        for _ in range(2):
            answer = await client.ask("POST", "/topics/{topic_name}", {"topic_name": "a"}, {}, Echo(text="t"), Echo)
            assert isinstance(answer, Echo)

    _run(is_async, test, lambda url: f"{gone},{url}")

    async def unreachable(client: Asked) -> None:
        with pytest.raises(AdminUnreachable, match=gone):
            await client.ask("GET", "/x", {}, {}, None, Echo)

    _run(is_async, unreachable, lambda _url: gone)


@both
def test_a_stream_comes_line_by_line(is_async: bool) -> None:
    async def test(client: Asked) -> None:
        assert await client.lines() == [b"data: 0\n", b"data: 1\n", b"data: 2\n"]

    _run(is_async, test)


def test_what_is_no_address_is_told() -> None:
    for text in ("127.0.0.1:80", "ftp://a:1", "http://", "http://a:1/path", ""):
        with pytest.raises(ValueError, match="address like"):
            parse_addresses(text)


def test_a_query_leaves_out_what_is_not_given() -> None:
    assert target("/a/{n}", {"n": "x/y"}, {"b": True, "c": None, "d": 1}) == "/a/x%2Fy?b=true&d=1"


def test_the_methods_are_those_of_the_table() -> None:
    """Mended by `make docs`."""
    generated = runpy.run_path(str(ROOT / "docs/generate/admin_client.py"))
    for name in ("async_admin.py", "blocking_admin.py"):
        assert (ROOT / "client/admin" / name).read_text() == generated["render"](name)
