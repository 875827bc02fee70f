"""Requests that fare as ordered: refused, carried out with the answer lost, delayed, held, each on its way."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse
from waiting import loop_until

from penstock.broker.apis.find_coordinator import error_response
from penstock.broker.network.dispatch import Dispatcher
from penstock.broker.network.handlers import Handlers
from penstock.broker.network.peer_log import PeerLog
from penstock.broker.network.request import Answer, CloseConnection, Request, RequestContext
from penstock.chaos.faults.faulty_requests import FaultyRequests
from penstock.chaos.faults.node_faults import NodeFaults, OrderReader
from penstock.chaos.faults.request_faults import DISCONNECT, Point, RequestFault, issue_tickets, read_hits
from penstock.chaos.faults.request_log import RequestLog
from penstock.local.errors import ClusterError
from penstock.local.local_node import LocalNode
from penstock.protocol.apis import ApiKey
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import NodeId
from penstock.protocol.messages import decode_response, encode_request
from penstock.protocol.structs import replace

API = "FindCoordinator"
BODY_OFFSET = 13
CONTEXT = RequestContext(listener_name="PLAINTEXT", peer_host="10.0.0.1", client_id="me")


class Connection:
    """One request's connection: what it was answered, and whether it holds later ones back."""

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self.is_holding = False

    def on_answer(self, _request: Request, answer: Answer) -> None:
        self.answer = answer

    def hold_later_requests(self, _request: Request) -> None:
        self.is_holding = True

    def release_later_requests(self, _request: Request) -> None:
        self.is_holding = False

    def mute(self, throttle_time_ms: int) -> None: ...
    def set_context(self, context: RequestContext) -> None: ...

    @property
    def outcome(self) -> str | None:
        """The name of the error, or `DISCONNECT`; None before there is an answer."""
        if self.answer is None:
            return None
        if isinstance(self.answer, CloseConnection):
            return DISCONNECT
        assert isinstance(self.answer, bytes)
        _, response = decode_response(ApiKey.FIND_COORDINATOR, 6, self.answer[4:])
        assert isinstance(response, FindCoordinatorResponse)
        return ErrorCode(int(response.coordinators[0].error_code)).name


class Room:
    """A node's handlers behind its orders; `handled` counts what reached them."""

    def __init__(self, folder: Path, *, overlaps: bool = False) -> None:
        self.folder = folder
        self.faults = NodeFaults(LocalNode(id=1, port=0, data=folder / "node-1", environment={}))
        self.handled = 0
        self._loop = asyncio.get_running_loop()
        handlers = Handlers()
        handlers.add_message(ApiKey.FIND_COORDINATOR, self._handle, answer_error=error_response, overlaps=overlaps)
        dispatcher = Dispatcher(handlers, self._loop, PeerLog(self._loop))
        reader = OrderReader(str(folder / "node-1.faults.json"))
        log = RequestLog(self.faults.request_log)
        self._begin = FaultyRequests(reader, log, "1").intercept(handlers, dispatcher.begin)

    def fault(self, number: int = 1, *, count: int | None = None, **fields: object) -> RequestFault:
        folder = self.folder / f"fault-{number}"
        issue_tickets(folder, count)
        fault = RequestFault(number=number, folder=str(folder), api=API, is_counted=count is not None)
        return replace(fault, **fields)  # type: ignore[arg-type]

    def ask(self, *, node_id: int | None = None, key: str = "a") -> Connection:
        connection = Connection()
        message = FindCoordinatorRequest(coordinator_keys=(key,))
        body = encode_request(ApiKey.FIND_COORDINATOR, 6, 7, "me", message)[4:]
        context = dataclasses.replace(CONTEXT, node_id=None if node_id is None else NodeId(node_id))
        self._begin(Request(connection, ApiKey.FIND_COORDINATOR, 6, 7, context, memoryview(body), BODY_OFFSET))
        return connection

    def _handle(self, request: FindCoordinatorRequest, _context: RequestContext) -> FindCoordinatorResponse:
        self.handled += 1
        return error_response(request, KafkaError(ErrorCode.NONE))


def in_a_room(folder: Path, use: Callable[[Room], object], *, overlaps: bool = False) -> None:
    async def run() -> None:
        result = use(Room(folder, overlaps=overlaps))
        if asyncio.iscoroutine(result):
            await result

    asyncio.run(run())


def test_error_before_handling_leaves_nothing_done_and_before_ack_loses_the_answer_of_what_is_done(
    tmp_path: Path,
) -> None:
    def use(room: Room) -> None:
        room.faults.order_requests(room.fault(error="COORDINATOR_NOT_AVAILABLE"))
        assert (room.ask().outcome, room.handled) == ("COORDINATOR_NOT_AVAILABLE", 0)
        room.faults.order_requests(room.fault(2, error="COORDINATOR_NOT_AVAILABLE", at="before-ack"))
        assert (room.ask().outcome, room.handled) == ("COORDINATOR_NOT_AVAILABLE", 1)
        room.faults.heal()
        assert (room.ask().outcome, room.handled) == ("NONE", 2)

    in_a_room(tmp_path, use)


@pytest.mark.parametrize(("at", "handled"), [("before-handling", 0), ("before-ack", 1)])
def test_disconnect_closes_the_connection_in_place_of_an_answer(tmp_path: Path, at: Point, handled: int) -> None:
    def use(room: Room) -> None:
        room.faults.order_requests(room.fault(error=DISCONNECT, at=at))
        assert (room.ask().outcome, room.handled) == (DISCONNECT, handled)

    in_a_room(tmp_path, use)


def test_tickets_are_the_clusters_and_outlive_other_orders(tmp_path: Path) -> None:
    def use(room: Room) -> None:
        fault = room.fault(error="NOT_COORDINATOR", count=3)
        room.faults.order_requests(fault)
        assert room.ask().outcome == "NOT_COORDINATOR"
        # Other orders for the same node, and another node that takes tickets of the same fault.
        room.faults.order_requests(fault, room.fault(2, error="REQUEST_TIMED_OUT", client_id="other"))
        other = Room(tmp_path / "other")
        other.faults.order_requests(fault)
        assert [other.ask().outcome, room.ask().outcome, other.ask().outcome, room.ask().outcome] == [
            "NOT_COORDINATOR",
            "NOT_COORDINATOR",
            "NONE",
            "NONE",
        ]
        assert [hit.api for hit in read_hits(Path(fault.folder))] == [API] * 3

    in_a_room(tmp_path, use)


def test_held_request_reaches_its_point_and_goes_on_once_the_fault_is_taken_back(tmp_path: Path) -> None:
    async def use(room: Room) -> None:
        for number, at, handled in ((1, "before-handling", 0), (2, "before-ack", 2)):
            fault = room.fault(number, holds=True, at=at)
            room.faults.order_requests(fault)
            connection = room.ask()
            assert len(read_hits(Path(fault.folder))) == 1
            assert (connection.answer, room.handled, connection.is_holding) == (
                None,
                handled,
                at == "before-handling",
            )
            room.faults.order_requests()
            await loop_until(lambda: connection.answer is not None, "the answer leaves")  # noqa: B023
            assert (connection.outcome, connection.is_holding) == ("NONE", False)

    in_a_room(tmp_path, use, overlaps=True)


def test_delayed_request_is_answered_all_the_same_after_its_connection_is_gone(tmp_path: Path) -> None:
    async def use(room: Room) -> None:
        room.faults.order_requests(room.fault(delay_ms=1))
        connection = room.ask()
        assert connection.answer is None
        await loop_until(lambda: connection.answer is not None, "the answer leaves")
        assert (connection.outcome, room.handled) == ("NONE", 1)

    in_a_room(tmp_path, use)


def test_delayed_request_goes_on_once_the_fault_is_taken_back(tmp_path: Path) -> None:
    async def use(room: Room) -> None:
        room.faults.order_requests(room.fault(delay_ms=3_600_000))
        connection = room.ask()
        assert connection.answer is None
        room.faults.order_requests()
        await loop_until(lambda: connection.answer is not None, "the answer leaves")
        assert (connection.outcome, room.handled) == ("NONE", 1)

    in_a_room(tmp_path, use)


def test_answer_that_is_ready_after_the_fault_was_taken_back_is_not_hit(tmp_path: Path) -> None:
    """A Fetch that waits for records is handled for a while."""

    async def use(room: Room) -> None:
        lost = room.fault(1, error=DISCONNECT, at="before-ack", count=1)
        room.faults.order_requests(lost, room.fault(2, holds=True))
        connection = room.ask()
        room.faults.order_requests()
        await loop_until(lambda: connection.answer is not None, "the answer leaves")
        assert connection.outcome == "NONE"
        assert read_hits(Path(lost.folder)) == []

    in_a_room(tmp_path, use)


def test_requests_of_nodes_and_of_other_clients_and_topics_are_spared(tmp_path: Path) -> None:
    def use(room: Room) -> None:
        room.faults.order_requests(
            room.fault(1, error="NOT_COORDINATOR", client_id="other"),
            room.fault(2, error="NOT_CONTROLLER", sender="node"),
            room.fault(3, error="REQUEST_TIMED_OUT", topic="orders"),
        )
        assert room.ask().outcome == "NONE"
        assert room.ask(node_id=2).outcome == "NOT_CONTROLLER"
        assert room.ask(key="orders").outcome == "REQUEST_TIMED_OUT"
        assert room.ask(key="orders-2").outcome == "NONE"

    in_a_room(tmp_path, use)


def test_log_has_every_request_of_a_client_and_its_answer(tmp_path: Path) -> None:
    def use(room: Room) -> None:
        room.faults.log_requests()
        assert room.ask().outcome == "NONE"
        room.ask(node_id=2)
        room.faults.order_requests(room.fault(error=DISCONNECT))
        assert room.ask().outcome == DISCONNECT
        # A mark of the process, then a request and its answer, twice; the node's own is left out.
        assert len(room.faults.request_log.read_text().splitlines()) == 5

    in_a_room(tmp_path, use)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"api": "Product"}, "'Product' is no API of Kafka"),
        ({"error": "NOT_LEADER"}, "'NOT_LEADER' is no error of Kafka"),
        ({"at": "later"}, "'later' is no point of a request"),
        ({"delay_ms": -1}, "a delay is 0 ms or more, not -1"),
    ],
)
def test_what_kafka_does_not_have_is_refused_with_a_sentence(fields: dict[str, object], sentence: str) -> None:
    with pytest.raises(ClusterError, match=sentence):
        RequestFault(number=1, folder="", **fields)  # type: ignore[arg-type]
