"""What a node logged of its clients' requests, in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from produce_requests import produce_request

from penstock.broker.apis.find_coordinator import error_response
from penstock.broker.network.request import Request, RequestContext
from penstock.chaos.faults.request_log import RequestLog
from penstock.chaos.testing.requests_seen import read_requests
from penstock.protocol.apis import ApiKey
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.messages import decode_header, encode_request, encode_response
from penstock.protocol.produce import PartitionProduceResponse, encode_produce_response

CONTEXT = RequestContext(listener_name="PLAINTEXT", peer_host="10.0.0.1", peer_port=4711, client_id="orders")
ORDERS = UUID(int=7)
QUESTION = FindCoordinatorRequest(coordinator_keys=("payments",))


def request_of(key: ApiKey, version: int, message: Any) -> Request:
    frame = memoryview(encode_request(key, version, 7, "orders", message)[4:])
    owner: Any = None
    return Request(owner, key, version, 7, CONTEXT, frame, decode_header(frame).body_offset)


def texts(path: Path) -> list[str]:
    return [seen.text for seen in read_requests(path)]


def test_a_produce_of_any_size_has_its_topic_and_its_error(tmp_path: Path) -> None:
    log = RequestLog(tmp_path / "requests")
    for size, code in ((10, ErrorCode.NONE), (100_000, ErrorCode.NOT_LEADER_OR_FOLLOWER)):
        request = request_of(ApiKey.PRODUCE, 13, produce_request(ORDERS, 3, b"\0" * size))
        answer = encode_produce_response(13, 7, [(None, None, [PartitionProduceResponse(3, int(code))])])
        log.write_answer(log.write_request(request), answer)
    assert texts(tmp_path / "requests") == [
        f"Produce acks=-1 {ORDERS}-3 by orders: ok",
        f"Produce acks=-1 {ORDERS}-3 by orders: NOT_LEADER_OR_FOLLOWER",
    ]


def test_errors_closed_connections_and_what_was_never_answered_are_told(tmp_path: Path) -> None:
    log = RequestLog(tmp_path / "requests")
    request = request_of(ApiKey.FIND_COORDINATOR, 6, QUESTION)
    response = error_response(QUESTION, KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    log.write_answer(log.write_request(request), encode_response(ApiKey.FIND_COORDINATOR, 6, 7, response))
    log.write_answer(log.write_request(request), None)
    log.write_request(request)
    # The process is started again: its first request has the number of an earlier one.
    RequestLog(tmp_path / "requests").write_request(request)
    assert texts(tmp_path / "requests") == [
        "FindCoordinator by orders: COORDINATOR_NOT_AVAILABLE",
        "FindCoordinator by orders: connection closed",
        "FindCoordinator by orders: no answer",
        "FindCoordinator by orders: no answer",
    ]


def test_half_a_line_of_a_node_that_was_killed_hides_no_other(tmp_path: Path) -> None:
    path = tmp_path / "requests"
    request = request_of(ApiKey.FIND_COORDINATOR, 6, QUESTION)
    RequestLog(path).write_request(request)
    with path.open("ab") as file:
        file.write(b"[2, 17")
    log = RequestLog(path)
    log.write_request(request)
    log.write_request(request)
    assert texts(path) == ["FindCoordinator by orders: no answer"] * 3


def test_a_node_that_logged_nothing_has_seen_nothing(tmp_path: Path) -> None:
    assert read_requests(tmp_path / "requests") == []
