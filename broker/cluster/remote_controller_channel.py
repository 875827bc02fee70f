"""The way from a broker to the active controller, when that is another node."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar, cast

from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse
from kio.schema.types import TopicName
from kio.static.primitive import i32

from ...client.connection import Connection
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.messages import Request, Response
from ...quorum.controller.controller import Controller
from ...quorum.decisions.controller_requests import BROKER_HEARTBEAT, ControllerRequest
from ...quorum.links.rules.peer_proof import PeerRefused
from ...quorum.metadata.image import MetadataImage
from ...quorum.metadata.metadata_log import METADATA_TOPIC
from ...quorum.metadata.voters import Voter
from ..configuration.quorum_times import QuorumTimes
from .metadata_cache import MetadataCache
from .peers import PeerConnector
from .rules.repeated_change import answer_of, repetition_of
from .rules.voter_choice import SilentVoters, VoterChoice

logger = logging.getLogger(__name__)

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")

# Before voters are asked again that all said that they are not the controller.
RETRY_MS: Final = 50
# For an answer to what nodes ask for themselves, which they may ask again. A decision about many partitions takes its
# time, a heartbeat does not: that one has `controller.quorum.request.timeout.ms`.
NODE_ANSWER_TIMEOUT_MS: Final = 4_000
# However short a time a client gives a change of metadata: a controller that is there needs less.
SHORTEST_WAIT_MS: Final = 1_000
# How soon a waiting request notices that another voter leads.
LEADER_CHECK_S: Final = 0.1
_NOT_CONTROLLER: Final = frozenset({int(ErrorCode.NOT_CONTROLLER)})
# DescribeQuorum is of the log's leader. For anything else, not to lead a partition says nothing about the controller.
_NOT_LEADER: Final = _NOT_CONTROLLER | {int(ErrorCode.NOT_LEADER_OR_FOLLOWER)}


class RemoteControllerChannel:
    """To the active controller: this node's own when that is active, else the voter that `leader_id` names, else one
    voter after the other. After a timeout the next voter is asked, whatever `leader_id` says (`voter_choice.py`).

    A request whose answer was lost is sent again. What only nodes ask carries the epochs by which a controller tells
    the second from the first; what clients ask is not done twice either (`repeated_change.py`).

    One request at a time; who must not wait behind others' requests has a channel of its own.
    """

    def __init__(
        self,
        peers: PeerConnector,
        metadata: MetadataCache,
        *,
        voters: Mapping[int, Voter],
        leader_id: Callable[[], int | None],
        silent: SilentVoters,
        times: QuorumTimes,
        own_controller: Controller | None = None,
        timeout_ms: int,
    ) -> None:
        self._peers = peers
        self._metadata = metadata
        self._voters = dict(voters)
        self._leader_id = leader_id
        self._choice = VoterChoice(voters, silent)
        self._times = times
        self._own_controller = own_controller
        self._timeout_ms = timeout_ms
        self._turn = asyncio.Lock()
        self._connection: Connection | None = None
        self._voter_id: int | None = None

    async def submit(self, request: ControllerRequest[RequestT, ResponseT], message: RequestT) -> ResponseT:
        controller, before = self._own_controller, self._metadata.image
        was_asked = False
        if controller is not None and controller.is_active:
            try:
                return await controller.submit(request.decision, message)
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_CONTROLLER:
                    raise
                was_asked = True
        response = await self._call(
            cast(Any, message),
            is_taken_in=not request.is_for_brokers,
            timeout_ms=self._wait_ms(message),
            answer_timeout_ms=self._answer_timeout_ms(request),
            attempts=_Attempts(before, was_asked=was_asked),
        )
        if request.is_for_brokers and response.error_code:
            raise KafkaError(ErrorCode(int(response.error_code)))
        return cast(ResponseT, response)

    async def describe_quorum(self, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
        """The leader's own answer. Raises KafkaError as `submit` does."""
        response = await self._call(
            request,
            is_taken_in=False,
            timeout_ms=self._timeout_ms,
            answer_timeout_ms=self._timeout_ms,
            attempts=_Attempts(self._metadata.image),
            refusals=_NOT_LEADER,
        )
        assert isinstance(response, DescribeQuorumResponse)
        return response

    def _wait_ms(self, message: object) -> int:
        """The time of a request: what its client gives it, where it says so, within bounds."""
        timeout = getattr(message, "timeout", None)
        if not isinstance(timeout, timedelta):
            return self._timeout_ms
        return min(max(int(timeout.total_seconds() * 1000), SHORTEST_WAIT_MS), self._timeout_ms)

    def _answer_timeout_ms(self, request: ControllerRequest[Any, Any]) -> int:
        """How long one voter may take."""
        if request is BROKER_HEARTBEAT:
            return self._times.request_timeout_ms
        return NODE_ANSWER_TIMEOUT_MS if request.is_for_brokers else self._timeout_ms

    async def _call(
        self,
        message: Request,
        *,
        is_taken_in: bool,
        timeout_ms: int,
        answer_timeout_ms: int,
        attempts: _Attempts,
        refusals: Container[int] = _NOT_CONTROLLER,
    ) -> Any:
        """As a client would, it asks again while there is no controller, until the time of a request is over."""
        response: Response | None = None
        try:
            async with asyncio.timeout(timeout_ms / 1000), self._turn:
                if not attempts.is_answer_lost:
                    # It may have waited for its turn.
                    attempts.before = self._metadata.image
                response = await self._ask_voters(message, answer_timeout_ms, refusals, attempts)
                if is_taken_in:
                    await self._wait_taken_in()
        except TimeoutError:
            if response is None:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"The controller did not answer: {attempts}.") from None
            # It is committed: an error would have the client ask for it a second time.
            logger.info("change not seen here yet: api=%s reason=%s", type(message).__name__, attempts)
        if attempts.is_answer_lost:
            return answer_of(message, response, attempts.before, self._metadata.image)
        return response

    async def _ask_voters(
        self, message: Request, answer_timeout_ms: int, refusals: Container[int], attempts: _Attempts
    ) -> Response:
        """The answer of the active controller; ends by being cancelled otherwise."""
        choice, loop = self._choice, asyncio.get_running_loop()
        while True:
            leader_id = self._leader_id()
            voter_id = choice.choose(leader_id, int(loop.time() * 1000))
            is_sent = False
            try:
                connection = await self._connect(voter_id)
                is_sent = True
                asked = repetition_of(message, attempts.before) if attempts.is_answer_lost else message
                response = await self._answer(connection, asked, answer_timeout_ms, leader_id)
                if not _says(response, refusals):
                    choice.on_useful(voter_id)
                    return response
                attempts.last = f"node {voter_id} is not the active controller"
                choice.on_refused(voter_id)
            except PeerRefused as error:
                attempts.refusal = str(error)
                choice.on_refused(voter_id)
            except TimeoutError as error:
                attempts.last = str(error)
                choice.on_silent(voter_id, int(loop.time() * 1000))
            except (ConnectionError, CorruptData) as error:
                attempts.last = str(error)
                choice.on_refused(voter_id)
            # One that says that it does not lead may have lost the leadership over it.
            attempts.is_answer_lost |= is_sent
            await self._leave()
            if self._leader_id() in (None, voter_id) or choice.is_round_over(int(loop.time() * 1000)):
                await asyncio.sleep(RETRY_MS / 1000)

    async def _answer(
        self, connection: Connection, message: Request, timeout_ms: int, leader_id: int | None
    ) -> Response:
        """The answer of the voter that is asked, given up for lost when another one leads than when it was asked.

        A process that stands still keeps its connections, and answers nothing.
        """
        call = asyncio.ensure_future(connection.call(message, timeout_ms=timeout_ms))
        try:
            while not call.done():
                await asyncio.wait({call}, timeout=LEADER_CHECK_S)
                if not call.done() and self._leader_id() not in (None, self._voter_id, leader_id):
                    raise ConnectionError(f"node {self._voter_id} is not the active controller any more")
        finally:
            call.cancel()
        return await call

    async def close(self) -> None:
        await self._leave()

    async def _connect(self, voter_id: int) -> Connection:
        if self._connection is not None and self._voter_id == voter_id:
            return self._connection
        await self._leave()
        self._voter_id = voter_id
        voter = self._voters[voter_id]
        self._connection, _ = await self._peers.connect(
            voter.host, voter.port, timeout_ms=self._times.request_timeout_ms
        )
        return self._connection

    async def _leave(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.close()

    async def _wait_taken_in(self) -> None:
        """The answer was of a commit; what comes after it here must see it. Whoever leads by now has it too."""
        question = DescribeQuorumRequest(
            topics=(
                TopicData(topic_name=TopicName(METADATA_TOPIC), partitions=(PartitionData(partition_index=i32(0)),)),
            )
        )
        answer = await self._ask_voters(
            question, self._times.request_timeout_ms, _NOT_LEADER, _Attempts(self._metadata.image)
        )
        assert isinstance(answer, DescribeQuorumResponse)
        if not answer.error_code and not answer.topics[0].partitions[0].error_code:
            await self._metadata.wait_for(answer.topics[0].partitions[0].high_watermark - 1)


class _Attempts:
    """Of one request: why the voters that were asked were of no use, and whether one of them may have done it."""

    def __init__(self, before: MetadataImage, *, was_asked: bool = False) -> None:
        """`before` is the image when it was asked first; `was_asked` says that it was, and the outcome is not known."""
        self.before = before
        self.is_answer_lost = was_asked
        self.last = "no controller could be reached"
        self.refusal: str | None = None

    def __str__(self) -> str:
        """What a voter has against this node says more than that another one does not lead."""
        return self.refusal or self.last


def _says(response: object, codes: Container[int]) -> bool:
    """Whether a response refuses as a whole with one of these codes: at the top, or the same for every item."""
    found = getattr(response, "error_code", None)
    if found:
        return int(found) in codes
    for name in getattr(response, "__slots__", ()):
        items = getattr(response, name)
        if isinstance(items, tuple) and items:
            return all(_says(item, codes) for item in items)
    return False
