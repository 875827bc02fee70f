"""Passwords of strangers are hashed one at a time, in turns, and few of them wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from penstock.broker.security.password_hashing import WAITING_MAX, PasswordHashing, TooManyLogins


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(30):
            await test()

    asyncio.run(within())


class Crowd:
    """Logins of which the first one holds the thread until `open`."""

    def __init__(self, hashing: PasswordHashing) -> None:
        self.hashing = hashing
        self.order: list[str] = []
        self.open = threading.Event()

    def login(self, peer: str) -> asyncio.Task[bytes]:
        def hash_password() -> bytes:
            self.open.wait(20)
            self.order.append(peer)
            return peer.encode()

        return asyncio.create_task(self.hashing.run(peer, hash_password))

    async def logins(self, peers: str) -> list[asyncio.Task[bytes]]:
        tasks = [self.login(peer) for peer in peers]
        await asyncio.sleep(0)
        return tasks


@asynccontextmanager
async def crowded() -> AsyncIterator[Crowd]:
    hashing = PasswordHashing(asyncio.get_running_loop())
    crowd = Crowd(hashing)
    try:
        yield crowd
    finally:
        crowd.open.set()
        hashing.close()


def test_one_address_waits_behind_itself() -> None:
    async def test() -> None:
        async with crowded() as crowd:
            tasks = await crowd.logins("a" * 10 + "bc")
            crowd.open.set()
            assert await asyncio.gather(*tasks) == [*[b"a"] * 10, b"b", b"c"]
            assert crowd.order == list("aabc" + "a" * 8)

    run(test)


def test_an_address_that_fills_all_places_gives_one_up_for_another() -> None:
    async def test() -> None:
        async with crowded() as crowd:
            tasks = await crowd.logins("a" * (1 + WAITING_MAX + 5) + "b")
            crowd.open.set()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            assert ends[-1] == b"b"
            assert sum(isinstance(one, TooManyLogins) for one in ends) == 6
            assert crowd.order.count("a") == WAITING_MAX

    run(test)


def test_the_event_loops_own_threads_stay_free() -> None:
    async def test() -> None:
        async with crowded() as crowd:
            tasks = await crowd.logins("a" * 30)
            loop = asyncio.get_running_loop()
            names = [await loop.run_in_executor(None, lambda: threading.current_thread().name) for _ in range(3)]
            assert not any(name.startswith("passwords") for name in names)
            assert crowd.order == []
            crowd.open.set()
            await asyncio.gather(*tasks)

    run(test)


def test_clients_that_are_gone_free_their_places_and_not_the_thread() -> None:
    async def test() -> None:
        async with crowded() as crowd:
            running, *waiting = await crowd.logins("a" * 20)
            for one in (running, *waiting):
                one.cancel()
            await asyncio.gather(running, *waiting, return_exceptions=True)
            (later,) = await crowd.logins("b")
            assert crowd.order == []
            crowd.open.set()
            assert await later == b"b"
            # The first one had begun; of the others nothing was hashed.
            assert crowd.order == ["a", "b"]

    run(test)


def test_a_login_given_up_in_the_moment_of_its_turn_passes_it_on() -> None:
    async def test() -> None:
        async with crowded() as crowd:
            first, second, third = await crowd.logins("abc")
            crowd.open.set()
            # Its callbacks run before the tasks that they wake.
            first.add_done_callback(lambda _: second.cancel())
            assert await third == b"c"
            with pytest.raises(asyncio.CancelledError):
                await second
            assert await crowd.login("d") == b"d"

    run(test)


def test_nothing_is_hashed_once_the_node_stops() -> None:
    async def test() -> None:
        async with crowded() as crowd:
            running, *waiting = await crowd.logins("abc")
            crowd.hashing.close()
            crowd.open.set()
            assert await running == b"a"
            ends = await asyncio.gather(*waiting, crowd.login("d"), return_exceptions=True)
            assert [type(one) for one in ends] == [TooManyLogins] * 3
            assert crowd.order == ["a"]

    run(test)
