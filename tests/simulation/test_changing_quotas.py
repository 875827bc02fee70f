"""Quotas change while clients produce: in virtual time the quota that holds is kept, and none waits without one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random
from typing import Final

import pytest
from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kio.schema.alter_client_quotas.v1.response import AlterClientQuotasResponse
from kio.schema.produce.v13.response import ProduceResponse
from kio.static.primitive import f64
from produce_requests import produce_request
from simulated_nodes import START_MS, SimulatedNodes, simulated_nodes

from penstock.chaos.simulation.cluster.machine import BROKER_PORT, host_of
from penstock.client.connection import connect
from penstock.protocol.errors import ErrorCode
from penstock.protocol.records import Record, write_batch
from penstock.quorum.metadata.quota_precedence import PRODUCER_BYTE_RATE

LEADER, OTHER = 1, 2
CLIENTS: Final = ("a", "b")
FREE: Final = "free"
"""A client that never has a quota."""
VALUE_BYTES: Final = 5_000
PAUSE_S: Final = 0.25
"""Between a response and the next request: 20 kB a second without a quota."""
RATES: Final = (2_000.0, 5_000.0, 10_000.0)
CHANGES: Final = 6
PHASE_S: Final = 33.0
WINDOW_S: Final = 11.0
ANSWER_MS: Final = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """One acknowledged request."""

    at_s: float
    size_bytes: int
    throttle_time_ms: int


class Clients:
    def __init__(self, nodes: SimulatedNodes, seed: int) -> None:
        self.nodes = nodes
        self.random = Random(seed)
        self.is_over = False
        self.produced: dict[str, list[Produced]] = {name: [] for name in (*CLIENTS, FREE)}
        self.phases: list[tuple[str, float, float, float | None]] = []
        """Client, from and to when its quota was in force everywhere, and the quota; None for none."""

    async def run(self) -> None:
        producing = [asyncio.create_task(self._produce(name)) for name in self.produced]
        await self._change_quotas()
        self.is_over = True
        await asyncio.gather(*producing)

    async def _produce(self, name: str) -> None:
        loop = asyncio.get_running_loop()
        batch = write_batch([Record(0, START_MS, None, bytes(VALUE_BYTES))])
        request = produce_request(self.nodes._topic_id, 0, batch, acks=-1, timeout_ms=ANSWER_MS)
        async with await connect(host_of(LEADER), BROKER_PORT, client_id=name) as connection:
            while not self.is_over:
                response = await connection.call(request, timeout_ms=ANSWER_MS)
                assert isinstance(response, ProduceResponse)
                assert ErrorCode(int(response.responses[0].partition_responses[0].error_code)) is ErrorCode.NONE
                throttle_time_ms = int(response.throttle_time.total_seconds() * 1000)
                self.produced[name].append(
                    Produced(at_s=loop.time(), size_bytes=VALUE_BYTES, throttle_time_ms=throttle_time_ms)
                )
                await asyncio.sleep(PAUSE_S)

    async def _change_quotas(self) -> None:
        """By way of a node that does not lead."""
        loop = asyncio.get_running_loop()
        async with await connect(host_of(OTHER), BROKER_PORT) as connection:
            for number in range(CHANGES):
                # Set and removed in turn, by each client.
                rates = {
                    name: self.random.choice(RATES) if (number + place) % 2 else None
                    for place, name in enumerate(CLIENTS)
                }
                entries = tuple(
                    EntryData(
                        entity=(EntityData(entity_type="client-id", entity_name=name),),
                        ops=(OpData(key=PRODUCER_BYTE_RATE, value=f64(rate or 0.0), remove=rate is None),),
                    )
                    for name, rate in rates.items()
                )
                response = await connection.call(AlterClientQuotasRequest(entries=entries, validate_only=False))
                assert isinstance(response, AlterClientQuotasResponse)
                assert {int(entry.error_code) for entry in response.entries} == {ErrorCode.NONE}
                # The leader has it soon after.
                await asyncio.sleep(1)
                from_s = loop.time()
                await asyncio.sleep(PHASE_S)
                self.phases += [(name, from_s, loop.time(), rate) for name, rate in rates.items()]


def within(produced: list[Produced], from_s: float, until_s: float) -> list[Produced]:
    return [one for one in produced if from_s <= one.at_s < until_s]


@pytest.mark.parametrize("seed", range(3))
def test_clients_have_the_quota_that_holds(seed: int) -> None:
    with simulated_nodes(2, seed=seed) as nodes:
        assert nodes.wait_leader(LEADER) == LEADER
        clients = Clients(nodes, seed)
        task = nodes.client.run(lambda: nodes.loop.create_task(clients.run()))
        nodes.loop.run_for(CHANGES * (PHASE_S + 2) + 60)
        assert task.done()
        task.result()
    assert not any(one.throttle_time_ms for one in clients.produced[FREE])
    for name, from_s, until_s, rate in clients.phases:
        produced = clients.produced[name]
        if rate is None:
            # A request may have been told to wait by the quota before.
            assert not any(one.throttle_time_ms for one in within(produced, from_s, until_s))
            continue
        # What was sent before the quota counts in its first window.
        settled = within(produced, from_s + WINDOW_S, until_s)
        seconds = until_s - from_s - WINDOW_S
        # A window's worth may come at once at either end.
        allowed = rate * (seconds + WINDOW_S) + 2 * VALUE_BYTES
        assert sum(one.size_bytes for one in settled) <= allowed, (name, rate)
        assert any(one.throttle_time_ms for one in within(produced, from_s, until_s)), (name, rate)
