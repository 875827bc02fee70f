"""Applications of asyncio code with aiokafka, in virtual time with a whole cluster: `penstock_sim`."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from penstock.chaos.simulation.application.simulated_cluster import SimulatedCluster
from penstock.chaos.simulation.application.simulation import PROGRAM, Simulation
from penstock.client import clock
from penstock.local.errors import ClusterError

PLUGIN: Final = "penstock.chaos.pytest_plugin"
HOUR_S: Final = 3600.0

pytestmark = pytest.mark.timeout(300)

# An interpreter whose memory lies elsewhere, and whose sets have another order, were it not started once more.
APPLICATION: Final = """
import asyncio
import random
import sys

garbage = [[number] for number in range(int(sys.argv[2]))]

from aiokafka import AIOKafkaProducer
from penstock.chaos.simulation.application.simulation import Simulation


async def scenario(cluster):
    topic = await cluster.topic(partitions=3)
    async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, linger_ms=5) as producer:
        async with cluster.random_faults("links"):
            for number in range(40):
                await producer.send(topic, b"%d" % number)
                await asyncio.sleep(random.random() / 10)


simulation = Simulation(seed=int(sys.argv[1]))
simulation.run(scenario)
print(simulation.trace_hash)
"""

# Seeds are what `random` draws from, so a seed fails always or never.
TESTS: Final = """
import random
import pytest


@pytest.mark.penstock_sim(seeds=20, nodes=1)
def test_draws(penstock_sim):
    async def scenario(cluster):
        async with cluster.pause(1):
            return random.random()

    assert penstock_sim.run(scenario) < 0.8


@pytest.mark.penstock_sim(nodes=1)
def test_skips(penstock_sim):
    pytest.skip("not today")
"""


async def send(producer: Any, topic: str, value: bytes) -> int:
    offset: int = (await producer.send_and_wait(topic, value)).offset
    return offset


def test_an_application_goes_on_through_each_fault(penstock_sim: Simulation) -> None:
    offsets: list[int] = []

    async def scenario(cluster: SimulatedCluster) -> None:
        topic = await cluster.topic(min_insync_replicas=2)
        # With acks=1, the client's default, a leader that was deposed meanwhile acknowledges what is lost then.
        async with AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap, acks="all", request_timeout_ms=120_000
        ) as producer:
            for break_it in (cluster.kill, cluster.stop, cluster.power_loss, cluster.isolate, cluster.pause):
                leader = await cluster.wait_leader(topic)
                async with break_it(leader):
                    assert await cluster.wait_leader(topic, other_than=leader) != leader
                    sending = asyncio.ensure_future(send(producer, topic, b"an order"))
                    await asyncio.sleep(1)
                offsets.append(await sending)
                await cluster.wait_in_sync()
            follower = cluster.nodes[await cluster.wait_leader(topic) % len(cluster.nodes)]
            async with cluster.fill_disk(follower), cluster.shift_clock(follower, 3_600_000):
                offsets.append(await send(producer, topic, b"an order"))
            await cluster.wait_in_sync()
            async with cluster.slow_link("client-0", latency_ms=2000):
                started_s = asyncio.get_running_loop().time()
                offsets.append(await send(producer, topic, b"an order"))
                assert asyncio.get_running_loop().time() - started_s >= 4
            await cluster.reset_connections()
            offsets.append(await send(producer, topic, b"an order"))
            await cluster.restart(follower)
            await cluster.wait_in_sync()
            assert {cluster.state(node) for node in cluster.nodes} == {"up"}

    penstock_sim.run(scenario)
    assert offsets == list(range(8))


@pytest.mark.penstock_sim(nodes=1)
def test_an_hour_takes_no_hour(penstock_sim: Simulation) -> None:
    async def scenario(cluster: SimulatedCluster) -> float:
        wall_ms, started_s = clock.now_ms(), asyncio.get_running_loop().time()
        await asyncio.sleep(HOUR_S)
        assert clock.now_ms() - wall_ms == pytest.approx(HOUR_S * 1000, abs=10)
        return asyncio.get_running_loop().time() - started_s

    assert penstock_sim.run(scenario) == pytest.approx(HOUR_S, abs=0.01)


@pytest.mark.penstock_sim(seeds=2, config={"broker.session.timeout.ms": 3000, "replica.lag.time.max.ms": 3000})
def test_what_was_acknowledged_is_read_by_a_group_whatever_the_seed_breaks(penstock_sim: Simulation) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        topic = await cluster.topic(partitions=2, min_insync_replicas=2)
        sent, seen = list[bytes](), set[bytes]()

        async def consume() -> None:
            async with AIOKafkaConsumer(
                topic, bootstrap_servers=cluster.bootstrap, group_id=topic, auto_offset_reset="earliest"
            ) as consumer:
                async for record in consumer:
                    seen.add(record.value)

        consuming = asyncio.ensure_future(consume())
        async with (
            AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, enable_idempotence=True) as producer,
            cluster.random_faults("crashes") as counts,
        ):
            for number in range(30):
                sent.append(b"%d" % number)
                await producer.send_and_wait(topic, sent[-1])
                await asyncio.sleep(0.5)
        assert counts.total() > 0
        await cluster.wait_lag(topic, 0)
        consuming.cancel()
        assert set(sent) <= seen

    penstock_sim.run(scenario)


@pytest.mark.penstock_sim(nodes=1, limit_s=30)
def test_a_scenario_that_waits_without_end_fails_and_says_where(penstock_sim: Simulation) -> None:
    async def wait() -> None:
        while True:  # noqa: ASYNC110 - nothing ever happens
            await asyncio.sleep(1)

    async def scenario(cluster: SimulatedCluster) -> None:
        await wait()

    with pytest.raises(ClusterError, match=r"did not end within 30 s of virtual time: it waits in .*\bwait, "):
        penstock_sim.run(scenario)


@pytest.mark.penstock_sim(limit_s=600)
def test_random_faults_end_by_themselves(penstock_sim: Simulation) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        topic = await cluster.topic()
        async with cluster.random_faults("all", duration_s=5) as counts:
            await asyncio.sleep(5)
            await cluster.wait_in_sync(topic)
            before = counts.copy()
            await asyncio.sleep(60)
            assert counts == before

    penstock_sim.run(scenario)


def test_a_process_of_the_application_is_killed_paused_and_cut_off(penstock_sim: Simulation) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        topic = await cluster.topic()
        ticks: list[float] = []
        offsets: list[int] = []

        async def work() -> None:
            async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all") as producer:
                while True:
                    ticks.append(asyncio.get_running_loop().time())
                    offsets.append(await send(producer, topic, b"a tick"))
                    await asyncio.sleep(1)

        async def has_progress(seen: list[Any]) -> bool:
            before = len(seen)
            await asyncio.sleep(10)
            return len(seen) > before

        worker = cluster.start_process("worker", work)
        assert await has_progress(offsets)
        async with worker.pause():
            assert not await has_progress(ticks)
        assert await has_progress(offsets)
        leader = await cluster.wait_leader(topic)
        async with cluster.partition(["worker"], cluster.nodes):
            assert not await has_progress(offsets)
        assert await has_progress(offsets)
        async with cluster.cut_one_way(leader, "worker"):
            assert not await has_progress(offsets)
        assert await has_progress(offsets)
        await worker.kill()
        assert not worker.is_running
        assert not await has_progress(ticks)
        with pytest.raises(ClusterError, match="worker was killed"):
            await worker.wait()
        with pytest.raises(ClusterError, match="a name of its own"):
            cluster.start_process("worker", work)
        assert await cluster.start_process("other", lambda: asyncio.sleep(1, "done")).wait() == "done"

    penstock_sim.run(scenario)


def test_a_seed_is_one_run_in_every_process(tmp_path: Path) -> None:
    program = tmp_path / "application.py"
    program.write_text(APPLICATION)
    hashes = [
        subprocess.run(
            [sys.executable, "-P", "-m", PROGRAM, str(program), seed, garbage],
            env={"PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True,
        ).stdout
        for seed, garbage, hash_seed in (("5", "0", "0"), ("5", "1000000", "7"), ("6", "0", "0"))
    ]  # fmt: skip
    assert hashes[0] == hashes[1] != hashes[2]


def test_without_a_clock_of_its_own_a_program_is_told_how_to_start() -> None:
    with pytest.raises(ClusterError, match=f"python -m {PROGRAM} FILE"):
        Simulation().run(lambda _: asyncio.sleep(0))


def test_a_failure_has_the_line_that_runs_it_again(tmp_path: Path) -> None:
    (tmp_path / "test_seeds.py").write_text(TESTS)

    def run(*arguments: str) -> str:
        command = [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", "-p", PLUGIN, *arguments]
        # Other plugins take most of the time.
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True).stdout

    told = run("-rs", "test_seeds.py")
    assert "1 failed, 1 skipped" in told, told
    assert "not today" in told
    (drawn,) = set(re.findall(r"^E +assert (0\.\d+) < 0\.8", told, re.MULTILINE))
    assert re.search(r"penstock: what happened.*fault begins: node 1 paused", told, re.DOTALL), told
    replay = re.search(r"the same run again: pytest (\S+) (--penstock-seed) (\d+)", told)
    assert replay is not None, told
    again = run(*replay.groups())
    assert f"assert {drawn} < 0.8" in again, again
