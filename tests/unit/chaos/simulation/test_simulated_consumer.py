"""What a simulated consumer tells of itself, with a client that tells what the test says."""

import asyncio
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.chaos.simulation.cluster import clients
from penstock.chaos.simulation.cluster.clients import Consumer, History
from penstock.chaos.simulation.cluster.loop import new_loop


def test_a_consumer_has_passed_records_that_were_deleted_before_it_read_them(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = new_loop(Random(1))
    state = SimpleNamespace(has_valid_position=False, position=None)

    class Client:
        def __init__(self, **_: Any) -> None:
            assignment = SimpleNamespace(state_value=lambda _: state)
            self._subscription = SimpleNamespace(subscription=SimpleNamespace(assignment=assignment))
            self._fetcher = SimpleNamespace(_fetch_task=loop.create_future())

        async def start(self) -> None:
            pass

        def assign(self, places: list[Any]) -> None:
            pass

        async def getmany(self, *, timeout_ms: int) -> dict[Any, Any]:
            await asyncio.sleep(timeout_ms / 1000)
            return {}

        async def stop(self) -> None:
            pass

    monkeypatch.setattr(clients, "AIOKafkaConsumer", Client)
    history = History("t", 1, lambda *_: 0)
    consumer = Consumer("consumer1", ["10.0.0.1:9092"], history, loop=loop, random=Random(2))
    consumer.start()
    loop.run_for(2)
    assert consumer.positions == [0]
    # Told that its offset is out of range, the client goes to the first that is there.
    state.has_valid_position, state.position = True, 760
    loop.run_for(2)
    assert consumer.positions == [760]
    assert history.read_count == 0
    consumer.is_stopping = True
    loop.run_for(2)
    assert consumer.is_done
