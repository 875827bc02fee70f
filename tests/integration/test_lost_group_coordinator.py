"""A copier goes on when the group's coordinator is lost within a transaction, although librdkafka may hang for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from waiting import DEADLINE_S, wait_for

from penstock.chaos.workloads.confluent_session import ConfluentSession
from penstock.chaos.workloads.outcomes import NotDoneError
from penstock.chaos.workloads.overdue_call import call_within
from penstock.chaos.workloads.session import Send, Session, SessionOptions, key_of
from penstock.client.client_log import SILENT_LOGGER
from penstock.client.cluster_metadata import ask_metadata
from penstock.local.cluster import LocalCluster

pytestmark = pytest.mark.integration

GROUP: Final = "copiers"
INPUT: Final = "in"
OUTPUT: Final = "out"
NODES: Final = 3


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    properties = {"offsets.topic.num.partitions": "5", "transaction.state.log.num.partitions": "5"}
    with LocalCluster(tmp_path / "cluster", node_count=NODES, properties=properties) as cluster:
        yield cluster


def session_of(cluster: LocalCluster) -> Session:
    options = SessionOptions(
        bootstrap=cluster.bootstrap, client_id="copier", group=GROUP, transactional_id="copier", is_read_committed=True
    )
    return ConfluentSession(options)


def send(session: Session, value: bytes) -> None:
    """To every partition, so that one of them was led by any node."""
    session.send([Send(key_of(OUTPUT, number), value) for number in range(NODES)])


def committed_values(cluster: LocalCluster) -> set[bytes | None]:
    reader = ConfluentSession(SessionOptions(bootstrap=cluster.bootstrap, client_id="reader", has_producer=False))
    keys = [key_of(OUTPUT, number) for number in range(NODES)]
    try:
        reader.assign(keys, from_beginning=True)
        values: set[bytes | None] = set()

        def is_at_end() -> bool:
            for records in reader.poll(0.2).values():
                values.update(record.value for record in records)
            return all(reader.reached(key) >= reader.end(key) for key in keys)

        wait_for(is_at_end, "read to the end")
        return values
    finally:
        reader.close()


def test_offsets_of_a_group_whose_coordinator_is_gone_are_sent_or_fail_and_the_next_session_goes_on(
    cluster: LocalCluster,
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap}, logger=SILENT_LOGGER)
    for future in admin.create_topics([NewTopic(INPUT, 1, NODES), NewTopic(OUTPUT, NODES, NODES)]).values():
        future.result(DEADLINE_S)
    first = session_of(cluster)
    first.begin()
    send(first, b"before")
    # The producer knows now where the group's coordinator is.
    first.send_offsets({"in-0": 0})
    first.commit()

    (described,) = admin.describe_consumer_groups([GROUP]).values()
    lost = int(described.result(DEADLINE_S).coordinator.id)
    cluster.kill_node(lost)

    wait_for(lambda: lost not in ask_metadata(admin).brokers, "the node is no longer in the metadata")
    first.begin()
    send(first, b"within")
    failure: NotDoneError | None = None
    try:
        # A signal does not interrupt librdkafka: without a deadline of its own here the test would hang with it.
        call_within(DEADLINE_S / 2, lambda: first.send_offsets({"in-0": 0}))
        first.commit()
    except NotDoneError as error:
        failure = error
    assert failure is None or failure.is_broken
    first.close()

    second = session_of(cluster)
    second.begin()
    send(second, b"after")
    second.send_offsets({"in-0": 0})
    second.commit()
    second.close()
    assert committed_values(cluster) == {b"before", b"after"} | ({b"within"} if failure is None else set())
