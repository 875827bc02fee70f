"""Every operation of the document, asked with what fits it: answers have the statuses, types and fields that it says.

Each run has another seed; a failure prints it, and `PENSTOCK_TEST_SEED` repeats the run.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any, Final

import requests
import schemathesis
from confluent_kafka import Consumer, TopicPartition
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from schemathesis.core.result import Ok
from schemathesis.specs.openapi import checks

from penstock.local.cluster import LocalCluster
from penstock.local.local_node import LocalNode

EXAMPLES: Final = 5
"""Of each operation."""
MAY_FAIL_WITH: Final = frozenset({501, 503})
"""What has no implementation, or no broker that answers."""
CHECKS: Final = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
TIMEOUT_S: Final = 30.0
BROKER: Final = 1
OTHER_BROKER: Final = 9
GROUP: Final = "g"
TOPIC: Final = "t"


def test_every_answer_is_as_the_document_says(tmp_path: Path) -> None:
    """The node is a process of its own: strategies parse a lot of source, and Python 3.11 cannot in two threads."""
    number = int(os.environ.get("PENSTOCK_TEST_SEED") or Random().getrandbits(32))
    with LocalCluster(tmp_path, properties={"offsets.topic.num.partitions": "1"}) as cluster:
        node = cluster.nodes[BROKER]
        admin = str(node.admin)
        document = requests.get(f"{admin}/openapi.json", timeout=TIMEOUT_S).json()
        (described,) = requests.get(f"{admin}/v3/clusters", timeout=TIMEOUT_S).json()["data"]
        cluster_id = described["cluster_id"]
        asked = 0
        try:
            for found in schemathesis.openapi.from_dict(document).get_all_operations():
                assert isinstance(found, Ok), found
                prepare(node, admin, cluster_id)
                asked += 1
                if not _is_endless(found.ok()):
                    ask(found.ok(), cluster_id, admin, number)
        except BaseException as failure:
            failure.add_note(f"PENSTOCK_TEST_SEED={number} repeats it.")
            raise
        assert asked == sum(len(methods) for methods in document["paths"].values())


def prepare(node: LocalNode, admin: str, cluster_id: str) -> None:
    """The topic is there, and the group has committed an offset of it."""
    topics = f"{admin}/v3/clusters/{cluster_id}/topics"
    if requests.get(f"{topics}/{TOPIC}", timeout=TIMEOUT_S).ok:
        return
    created = requests.post(topics, json={"topic_name": TOPIC, "partitions_count": 1}, timeout=TIMEOUT_S)
    assert created.status_code == 201, created.text
    consumer = Consumer({"bootstrap.servers": node.address, "group.id": GROUP})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 0)], asynchronous=False)
    consumer.close()


def _is_endless(operation: Any) -> bool:
    """A stream of events has no end to wait for; `test_events.py` reads it."""
    usual = operation.definition.raw["responses"].get("200", {})
    return "text/event-stream" in usual.get("content", {})


def ask(operation: Any, cluster_id: str, base_url: str, number: int) -> None:
    known = {"topic_name": TOPIC, "broker_id": BROKER, "consumer_group_id": GROUP, "partition_id": 0}
    never: dict[str, object] = {}
    if operation.method == "delete" and operation.path.endswith("/brokers/{broker_id}"):
        # A node that unregisters itself answers nothing else any more.
        never = {"broker_id": OTHER_BROKER}

    @seeded(number)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(), st.booleans())
    def one(case: Any, is_known: bool) -> None:
        if "cluster_id" in case.path_parameters:
            case.path_parameters["cluster_id"] = cluster_id
        for name in case.path_parameters.keys() & known.keys() if is_known else ():
            case.path_parameters[name] = known[name]
        case.path_parameters.update(never)
        response = case.call(base_url=base_url, timeout=TIMEOUT_S)
        case.validate_response(response, checks=CHECKS)
        assert response.status_code < 500 or response.status_code in MAY_FAIL_WITH, response.content

    one()
