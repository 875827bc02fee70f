"""A follower's connection when the leader ends it: the follower hears of it, once, at whatever moment that is."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import pytest
import uvloop
from waiting import loop_until

from penstock.broker.replication.fetcher_link import FetcherLink
from penstock.client.connection import Connection

NewLoop: TypeAlias = Callable[[], asyncio.AbstractEventLoop]
End: TypeAlias = Callable[[asyncio.StreamWriter], None]

DEADLINE_S = 10


def close(writer: asyncio.StreamWriter) -> None:
    writer.close()


def reset(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


def run(new_loop: NewLoop, scenario: Callable[[Connection, asyncio.StreamWriter], Coroutine[Any, Any, None]]) -> None:
    """With a connection and the leader's end of it. What goes wrong in a callback of the loop fails the test."""

    async def main() -> None:
        wrong: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: wrong.append(context))
        accepted: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
        server = await asyncio.start_server(lambda _, writer: accepted.set_result(writer), "127.0.0.1", 0)
        async with server, asyncio.timeout(DEADLINE_S):
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            leader = await accepted
            connection = Connection(reader, writer, peer="leader:9092", client_id="follower", timeout_ms=1_000)
            try:
                await scenario(connection, leader)
            finally:
                leader.close()
                writer.transport.abort()
        assert not wrong, wrong

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("end", [close, reset])
def test_a_connection_that_is_lost_before_it_is_taken_over_is_refused(end: End, new_loop: NewLoop) -> None:
    async def scenario(connection: Connection, leader: asyncio.StreamWriter) -> None:
        end(leader)
        await loop_until(lambda: not connection.is_open, "the end of the connection", interval_s=0)
        with pytest.raises(ConnectionError, match="leader:9092 closed the connection"):
            FetcherLink(connection, on_answer=lambda _: None, on_lost=lambda _: None)

    run(new_loop, scenario)


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("end", [close, reset])
def test_a_link_that_is_lost_says_so_once_and_sends_no_more_questions(end: End, new_loop: NewLoop) -> None:
    async def scenario(connection: Connection, leader: asyncio.StreamWriter) -> None:
        answers: list[bytes] = []
        reasons: list[str] = []
        link = FetcherLink(connection, on_answer=lambda frame: answers.append(bytes(frame)), on_lost=reasons.append)
        leader.write(struct.pack(">i", 6) + b"answer")
        await loop_until(lambda: answers, "the answer", interval_s=0)
        end(leader)
        while not reasons:
            link.send(b"question")
            await asyncio.sleep(0)
        # It is closed by now, which is where uvloop takes a write for an error of its caller.
        for _ in range(10):
            link.send(b"question")
            await asyncio.sleep(0)
        link.close("no fetcher uses it any more")
        assert answers == [b"answer"]
        assert len(reasons) == 1

    run(new_loop, scenario)
