"""FindCoordinator, while there are none."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.static.primitive import i8

from penstock.broker.apis.find_coordinator import find_coordinator
from penstock.broker.network.request import RequestContext
from penstock.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (0, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (2, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (3, ErrorCode.INVALID_REQUEST),
    ],
)
def test_every_key_is_answered_alike(kind: int, code: ErrorCode) -> None:
    context = RequestContext(listener_name="PLAINTEXT", peer_host="127.0.0.1", client_id="test")
    answer: Any = find_coordinator(FindCoordinatorRequest(key_type=i8(kind), coordinator_keys=("a", "b")), context)
    assert [one.error_code for one in answer.coordinators] == [code, code]
