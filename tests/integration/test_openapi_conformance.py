"""Every operation of the document, asked with what fits it: answers have the statuses, types and fields that it says.

Each run has another seed; a failure prints it, and `PENSTOCK_TEST_SEED` repeats the run.
"""

from __future__ import annotations

import asyncio
import os
from random import Random
from typing import Any, Final

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from rest_node import BROKER, RestNode, run_with
from schemathesis.core.result import Ok
from schemathesis.specs.openapi import checks

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
OTHER_BROKER: Final = 9
GROUP: Final = "g"
TOPIC: Final = "t"


def test_every_answer_is_as_the_document_says() -> None:
    number = int(os.environ.get("PENSTOCK_TEST_SEED") or Random().getrandbits(32))

    async def test(node: RestNode) -> None:
        document = await (await node.session.get("/openapi.json")).json()
        base_url = str(node.session._base_url).rstrip("/")
        loop = asyncio.get_running_loop()
        asked = 0
        for found in schemathesis.openapi.from_dict(document).get_all_operations():
            assert isinstance(found, Ok), found
            if TOPIC not in node.node.metadata.image.topics.by_name:
                await node.create(TOPIC)
                await node.commit(GROUP, TOPIC, {0: 0})
            asked += 1
            if not _is_endless(found.ok()):
                await loop.run_in_executor(None, ask, found.ok(), str(node.cluster_id), base_url, number)
        assert asked == sum(len(methods) for methods in document["paths"].values())

    try:
        run_with(test, offsets_topic_num_partitions="1")
    except BaseException as failure:
        failure.add_note(f"PENSTOCK_TEST_SEED={number} repeats it.")
        raise


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
        response = case.call(base_url=base_url, timeout=30)
        case.validate_response(response, checks=CHECKS)
        assert response.status_code < 500 or response.status_code in MAY_FAIL_WITH, response.content

    one()
