"""SIGKILL under load and restart, again and again: what was acknowledged is there, once, in order, without holes."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from numbered_load import DEADLINE_S, NumberedLoad, read_all

from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

TOPIC = "killed"
PARTITIONS = 3
KILLS = int(os.environ.get("PENSTOCK_TEST_KILLS", "6"))
RECORDS_BETWEEN_KILLS = 4_000


@pytest.mark.parametrize("flush_messages", [None, 1], ids=["page cache", "flush.messages=1"])
def test_sigkill_under_load_loses_nothing_and_repeats_nothing(tmp_path: Path, flush_messages: int | None) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
    sys.stdout.write(
        f"replay: PENSTOCK_TEST_SEED={seed} PENSTOCK_TEST_KILLS={KILLS} pytest tests/integration/test_kill.py\n"
    )
    generator = random.Random(seed)
    # Small segments, so that kills meet rolls and recovery meets several segments.
    config = {"segment.bytes": "1048576"} | ({"flush.messages": str(flush_messages)} if flush_messages else {})
    with LocalCluster(tmp_path / "cluster") as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1, config=config)])[TOPIC].result(DEADLINE_S)
        load = NumberedLoad(cluster.bootstrap, TOPIC, PARTITIONS, generator)
        for _ in range(KILLS):
            load.send_until(load.acknowledged_count + generator.randrange(1, RECORDS_BETWEEN_KILLS))
            cluster.kill_node(1)
            cluster.start_node(1)
        load.send_until(load.acknowledged_count + RECORDS_BETWEEN_KILLS)
        load.finish()
        for partition in range(PARTITIONS):
            stored = read_all(cluster.bootstrap, TOPIC, partition)
            # Contiguous offsets, every value sent exactly once, in order: nothing else was ever in the log.
            assert stored == [(number, number) for number in range(load.sent[partition])]
            assert set(load.acknowledged[partition]) <= set(stored)
