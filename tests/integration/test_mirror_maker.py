"""MirrorMaker 2 of Apache Kafka, unchanged, in its dedicated mode: Penstock and Apache Kafka into one Penstock cluster.

It mirrors exactly once, and is killed meanwhile: `PENSTOCK_TEST_KILLS` is how often (1; more in a soak).
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import pytest
from connect_worker import MIRROR_MAKER, START_TIMEOUT_S, ConnectProcess
from exactly_once import PROPERTIES
from mirrored_source import GROUP, ORDERS, PRICES, MirroredSource
from replicated_cluster import draw_generator, say
from waiting import wait_for

from penstock.local.apache_kafka.cluster import KafkaCluster
from penstock.local.apache_kafka.jars import KafkaJars
from penstock.local.cluster import LocalCluster
from penstock.local.local_node import HOST
from penstock.local.ports import find_free

pytestmark = [pytest.mark.integration, pytest.mark.timeout(14400)]

KILLS: Final = int(os.environ.get("PENSTOCK_TEST_KILLS", "1"))
TARGET: Final = "aggregate"
# To each partition, before the mirror begins and for each kill.
RECORDS: Final = 200
SESSION_MS: Final = 3_000
# What a killed MirrorMaker left open ends by this: the next one reads its own offsets to the end first.
TRANSACTION_TIMEOUT_MS: Final = 10_000
TARGET_PROPERTIES: Final[Mapping[str, str]] = {
    **PROPERTIES,
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


def test_records_configs_partitions_and_group_offsets_are_mirrored(kafka_jars: KafkaJars, tmp_path: Path) -> None:
    """From each source: every committed record once, in order, and a group goes on at the target where it was."""
    generator = draw_generator(__file__)
    single = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5"}
    with (
        KafkaCluster(kafka_jars, tmp_path / "kafka", properties=single, heap_mib=400) as kafka,
        LocalCluster(tmp_path / "penstock", node_count=3, properties=PROPERTIES) as penstock,
        LocalCluster(tmp_path / TARGET, node_count=3, properties=TARGET_PROPERTIES) as aggregate,
    ):
        target = aggregate.bootstrap
        sources = (
            MirroredSource("penstock", penstock.bootstrap, replicas=3),
            MirroredSource("kafka", kafka.bootstrap, replicas=1),
        )
        for source in sources:
            source.create_topics()
            source.write(RECORDS)
            source.read_in_group()
        properties = mirror_properties(sources, target)
        with ConnectProcess(
            kafka_jars, tmp_path, "mirror-maker", MIRROR_MAKER, properties, ("--clusters", TARGET)
        ) as maker:

            def wait(condition: Callable[[MirroredSource], bool], what: str) -> None:
                for source in sources:

                    def holds(source: MirroredSource = source) -> bool:
                        maker.check_running()
                        return condition(source)

                    def failure(source: MirroredSource = source) -> str:
                        return f"{what} of {source.alias}:\n{maker.log_tail()}"

                    wait_for(holds, failure, timeout_s=START_TIMEOUT_S, interval_s=0.1)

            wait(lambda source: source.is_complete_at(target), "all records")
            wait(lambda source: source.are_configs_at(target), "configs")
            wait(lambda source: source.is_group_at(target), "offsets of the group")
            for source in sources:
                source.change()
            in_the_middle = 0
            for _ in range(KILLS):
                goals = []
                for source in sources:
                    goals.append((source, source.count_at(target) + generator.randrange(1, RECORDS)))
                    source.write(RECORDS)
                wait_for(
                    lambda goals=goals: any(source.count_at(target) >= goal for source, goal in goals),  # type: ignore[misc]
                    lambda: f"some is mirrored:\n{maker.log_tail()}",
                    timeout_s=START_TIMEOUT_S,
                )
                maker.kill()
                in_the_middle += any(source.count_at(target) < source.count for source in sources)
                maker.start()
            wait(lambda source: source.is_complete_at(target), "all records")
            wait(lambda source: source.are_configs_at(target), "the changed config")
            maker.stop()
        read = [source.check_group_goes_on(target) for source in sources]
        for source in sources:
            source.repeat_at(target)
            with pytest.raises(AssertionError, match="differs at the target"):
                source.is_complete_at(target)
    assert min(read) > 0
    say(f"{KILLS} kills of MirrorMaker, {in_the_middle} of them with records to come; {read} records read on")


def mirror_properties(sources: Iterable[MirroredSource], target: str) -> dict[str, str]:
    """As `connect-mirror-maker.sh` takes them."""
    properties = {
        "clusters": ", ".join([*(source.alias for source in sources), TARGET]),
        f"{TARGET}.bootstrap.servers": target,
        "topics": f"{ORDERS}, {PRICES}",
        "groups": GROUP,
        "replication.factor": "3",
        "tasks.max": "2",
        "sync.group.offsets.enabled": "true",
        # Each record's offset is told, so that of a group is translated exactly.
        "offset.lag.max": "0",
        "refresh.topics.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
        "sync.topic.configs.interval.seconds": "1",
        "sync.group.offsets.interval.seconds": "1",
        "emit.checkpoints.interval.seconds": "1",
        f"{TARGET}.exactly.once.source.support": "enabled",
        f"{TARGET}.offset.storage.partitions": "5",
        f"{TARGET}.session.timeout.ms": str(SESSION_MS),
        f"{TARGET}.heartbeat.interval.ms": str(SESSION_MS // 3),
        f"{TARGET}.scheduled.rebalance.max.delay.ms": "0",
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": f"http://{HOST}:{find_free(random.Random())}",
        "plugin.discovery": "service_load",
        f"{TARGET}.plugin.discovery": "service_load",
        f"{TARGET}.producer.transaction.timeout.ms": str(TRANSACTION_TIMEOUT_MS),
    }
    for source in sources:
        flow = f"{source.alias}->{TARGET}"
        properties |= {
            f"{source.alias}.bootstrap.servers": source.bootstrap,
            f"{source.alias}.consumer.isolation.level": "read_committed",
            # Small transactions, so that kills come between them.
            f"{source.alias}.consumer.max.poll.records": "20",
            f"{flow}.enabled": "true",
            f"{flow}.offset-syncs.topic.replication.factor": str(source.replicas),
        }
    return properties
