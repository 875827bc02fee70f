"""FindCoordinator: groups have one, once their topic is there; others have none yet."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.static.primitive import i8

from penstock.broker.apis.find_coordinator import error_response, find_coordinators
from penstock.broker.cluster.metadata_cache import MetadataCache
from penstock.protocol.errors import ErrorCode, KafkaError


def request(kind: int = 0) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=i8(kind), coordinator_keys=("a", "b"))


def test_without_its_topic_no_group_has_a_coordinator() -> None:
    answer: Any = find_coordinators(MetadataCache(), "__consumer_offsets", request(), "PLAINTEXT")
    assert [one.error_code for one in answer.coordinators] == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.INVALID_REQUEST])
def test_every_key_is_answered_alike(code: ErrorCode) -> None:
    answer: Any = error_response(request(2), KafkaError(code))
    assert [one.error_code for one in answer.coordinators] == [code, code]
