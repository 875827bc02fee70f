"""An unchanged Kafka Streams application with exactly_once_v2 on three nodes, all of them killed at random.

It counts flights in windows, joins two streams and a stream with a table, and restores its state from changelogs; what
it writes is what the same computation in plain Python gives. A stray consumer under its group id does not end it.
`PENSTOCK_TEST_KILLS` is how often something is killed (4; more in a soak). `PENSTOCK_TEST_BROKER=apache-kafka` does it
to Apache Kafka.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import flights
import pytest
from confluent_kafka import Consumer, ConsumerGroupType
from confluent_kafka.admin import AdminClient
from exactly_once import PARTITIONS, WAIT_S, Hunt, committed_offsets, create_topics, end_offsets, three_nodes
from replicated_cluster import DEADLINE_S, draw_generator, say
from streams_application import Feed, StreamsApplication, compile_application

from penstock.chaos.workloads.committed_reader import CommittedReader
from penstock.chaos.workloads.numbered_records import read_all
from penstock.client import clock
from penstock.client.client_log import SILENT_LOGGER

pytestmark = [pytest.mark.integration, pytest.mark.timeout(7200)]

KILLS: Final = int(os.environ.get("PENSTOCK_TEST_KILLS", "4"))
OUTPUTS_BETWEEN_KILLS: Final = 100
# What is in the application's hands when something is killed, at least.
AHEAD: Final = 100
# Twice for each kill the test waits until the application has come on.
FLIGHTS: Final = (2 * KILLS + 1) * (OUTPUTS_BETWEEN_KILLS + AHEAD)
FEW_FLIGHTS: Final = 60
INPUTS: Final = ("flights", "weather", "airlines")
OUTPUTS: Final = ("carrier-days", "flight-weather", "flight-airlines")


def test_streams_application_computes_each_output_once(tmp_path: Path) -> None:
    jars = compile_application(tmp_path)
    sample = flights.take(FLIGHTS, now_ms=clock.now_ms())
    generator = draw_generator(__file__)
    with three_nodes(tmp_path / "cluster") as cluster, ExitStack() as stack:
        bootstrap = cluster.bootstrap
        create_topics(bootstrap, *INPUTS, *OUTPUTS)
        application = StreamsApplication(tmp_path, bootstrap, jars, generator)
        readers = {
            topic: stack.enter_context(CommittedReader(bootstrap, topic, partitions=PARTITIONS)) for topic in OUTPUTS
        }
        expected = {
            "carrier-days": sum(flights.counts(sample).values()),
            "flight-weather": sum(flights.weather_of_flights(sample).values()),
            "flight-airlines": sum(flights.airlines_of_flights(sample).values()),
        }

        def written() -> int:
            return readers["flight-airlines"].count

        def is_complete() -> bool:
            return all(readers[topic].count >= count for topic, count in expected.items())

        with Feed(bootstrap, sample.airlines):
            pass
        hunt = Hunt(
            cluster,
            application,
            generator,
            progress=written,
            topics=INPUTS + OUTPUTS,
            step=OUTPUTS_BETWEEN_KILLS,
        )
        try:
            with Feed(bootstrap, sample.events, allowed=lambda: hunt.goal + AHEAD):
                application.start()
                hunt.run(KILLS)
            for topic in INPUTS:
                ends = end_offsets(bootstrap, topic, PARTITIONS, is_committed=False)
                hunt.wait(
                    lambda topic=topic, ends=ends: (  # type: ignore[misc]
                        [max(at, 0) for at in committed_offsets(bootstrap, application.group, topic, PARTITIONS)]
                        == ends
                    ),
                    f"{topic} is read",
                )
            hunt.wait(is_complete, "all outputs are there")
        finally:
            application.stop()
        found = {
            topic: [
                record.value.decode()
                for number in range(PARTITIONS)
                for record in read_all(bootstrap, topic, number, timeout_s=DEADLINE_S)
            ]
            for topic in OUTPUTS
        }
        assert not [error for reader in readers.values() for error in reader.errors]
    # A count is written with every flight that it counts.
    windows: dict[str, list[int]] = defaultdict(list)
    for value in found["carrier-days"]:
        window, _, count = value.partition("|")
        windows[window].append(int(count))
    assert windows == {window: list(range(1, count + 1)) for window, count in flights.counts(sample).items()}
    _check_equal(found["flight-weather"], flights.weather_of_flights(sample))
    _check_equal(found["flight-airlines"], flights.airlines_of_flights(sample))
    assert application.restored() > 0, "a state that was never restored shows nothing"
    say("killed:", dict(hunt.killed), "with", len(sample.events), "inputs,", sum(expected.values()), "outputs,")
    say(application.restored(), "records of changelogs restored in", application.lives, "lives")


def test_a_stray_consumer_of_the_consumer_protocol_leaves_the_application_alone(tmp_path: Path) -> None:
    """The group cannot be upgraded: its assignments carry what only the assignor of Kafka Streams can make."""
    jars = compile_application(tmp_path)
    sample = flights.take(FEW_FLIGHTS, now_ms=clock.now_ms())
    with three_nodes(tmp_path / "cluster") as cluster, ExitStack() as stack:
        bootstrap = cluster.bootstrap
        create_topics(bootstrap, *INPUTS, *OUTPUTS)
        reader = stack.enter_context(CommittedReader(bootstrap, "flight-airlines", partitions=PARTITIONS))
        application = StreamsApplication(tmp_path, bootstrap, jars, draw_generator(__file__))
        stack.callback(application.stop)
        with Feed(bootstrap, sample.airlines):
            application.start()

        def feed_and_wait(times: int) -> None:
            with Feed(bootstrap, sample.events):
                pass
            goal = times * sum(flights.airlines_of_flights(sample).values())
            assert clock.wait_until(
                lambda: reader.count >= goal or not application.is_running, timeout_s=WAIT_S, interval_s=0.02
            )
            assert application.is_running
            assert reader.count == goal

        feed_and_wait(1)
        stray = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": application.group, "group.protocol": "consumer"},
            logger=SILENT_LOGGER,
        )
        with closing(stray):
            stray.subscribe(["flights"])
            message = stray.poll(DEADLINE_S)
            assert message is not None
            error = message.error()
            assert error is not None
            # GROUP_ID_NOT_FOUND, which is fatal to it.
            assert "The group id does not exist" in error.str()
        admin = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT_LOGGER)
        (group,) = admin.list_consumer_groups().result().valid
        assert (group.group_id, group.type) == (application.group, ConsumerGroupType.CLASSIC)
        feed_and_wait(2)


def _check_equal(found: list[str], expected: Counter[str]) -> None:
    lost, added = expected - Counter(found), Counter(found) - expected
    assert (lost, added) == (Counter(), Counter()), f"lost {list(lost)[:10]}, too much {list(added)[:10]}"
