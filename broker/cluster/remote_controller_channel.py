"""The way from a broker to the active controller, when that is another node.

Kafka: `NodeToControllerChannelManager`, `ForwardingManager`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar, cast

from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest
from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse

from ...client.connection import Connection
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.ids import NodeId
from ...protocol.messages import NO_HEADER_TAGS, Request, Response
from ...protocol.no_quorum import NO_QUORUM
from ...protocol.own_apis import encode_requester_tags, read_outcome
from ...quorum.controller.controller import Controller
from ...quorum.decisions.controller_request import ControllerRequest
from ...quorum.decisions.heartbeats import BROKER_HEARTBEAT
from ...quorum.links.rules.peer_proof import PeerRefused
from ...quorum.metadata.voters import Voter
from ...quorum.permissions.requester import PermissionsChangedError, Requester, encode_requester
from ..configuration.quorum_times import QuorumTimes
from .metadata_cache import MetadataCache
from .peer_link import PeerLink, answer_unless
from .peers import PeerConnector
from .rules.repeated_change import BARRIER, is_once, remaining, whole_answer
from .rules.voter_choice import SilentVoters, VoterChoice
from .rules.watched_change import WatchedChange

logger = logging.getLogger(__name__)

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")
Exchange: TypeAlias = Callable[[Connection, Request, int], Awaitable[tuple[Response, int] | None]]
"""Sends a request with a timeout in milliseconds. Returns the response, and the offset of the image that it rests on;
None from a voter that is not the active controller. Raises what `Connection.call` does."""

# Before voters are asked again that all said that they are not the controller, unless another leader is named.
RETRY_MS: Final = 50
_NAME_CHECK_MS: Final = 5
# For an answer to what nodes ask for themselves, which they may ask again. A decision about many partitions takes its
# time, a heartbeat does not: that one has `controller.quorum.request.timeout.ms`.
NODE_ANSWER_TIMEOUT_MS: Final = 4_000
# However short a time a client gives a change of metadata, and when this node stops: a controller that is there needs
# less.
SHORTEST_WAIT_MS: Final = 1_000
# How soon a waiting request notices that another voter leads.
LEADER_CHECK_MS: Final = 100
_NOT_LEADER: Final = frozenset({int(ErrorCode.NOT_CONTROLLER), int(ErrorCode.NOT_LEADER_OR_FOLLOWER)})


class RemoteControllerChannel:
    """To the active controller: this node's own when that is active, else the voter that `leader_id` names, else one
    voter after the other. After a timeout the next voter is asked, whatever `leader_id` says (`voter_choice.py`).

    A change is answered once this node's own image has reached the offset that the controller's answer names, so a
    client that reads after it sees it. A request whose answer was lost is sent again. Requests of nodes carry epochs
    by which a controller recognises the second one; changes that clients request are not made twice either: each has
    a name, and what the first attempt did is in the log under it (`repeated_change.py`). Where a snapshot took the
    place of that part of the log the answer is REQUEST_TIMED_OUT, as the outcome is not known.

    One request at a time: a caller that must not wait behind others has a channel of its own. Kafka:
    `NodeToControllerChannelManager`.
    """

    def __init__(
        self,
        peers: PeerConnector,
        metadata: MetadataCache,
        *,
        voters: Mapping[NodeId, Voter],
        leader_id: Callable[[], NodeId | None],
        silent: SilentVoters,
        times: QuorumTimes,
        own_controller: Controller | None = None,
        timeout_ms: int,
        name: str,
        no_quorum: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`name` is of this channel alone, in all of the cluster's life. `no_quorum` says why no voter can lead, as far
        as this node knows: what clients are told then."""
        self._link = PeerLink(lambda: peers)
        self._metadata = metadata
        self._voters = dict(voters)
        self._leader_id = leader_id
        self._choice = VoterChoice(voters, silent)
        self._times = times
        self._own_controller = own_controller
        self._timeout_ms = timeout_ms
        self._no_quorum = no_quorum
        self._name = name
        self._request_count = 0
        self._turn = asyncio.Lock()
        self._waits: set[asyncio.Timeout] = set()

    async def submit(
        self,
        request: ControllerRequest[RequestT, ResponseT],
        message: RequestT,
        *,
        requester: Requester | None = None,
    ) -> ResponseT:
        if not is_once(message):
            return await self._submit(request, message, requester, None)
        self._request_count += 1
        with self._metadata.watch(f"{self._name}-{self._request_count}") as change:
            return await self._submit(request, message, requester, change)

    async def _submit(
        self,
        request: ControllerRequest[RequestT, ResponseT],
        message: RequestT,
        requester: Requester | None,
        change: WatchedChange | None,
    ) -> ResponseT:
        controller, name = self._own_controller, "" if change is None else change.name
        was_asked = False
        if controller is not None and controller.is_active:
            try:
                return await controller.submit(
                    request.decision,
                    message,
                    name=name,
                    is_of_client=not request.is_for_brokers,
                    requester=requester,
                )
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_CONTROLLER:
                    raise
                was_asked = True
        response = await self._call(
            cast(Any, message),
            partial(_exchange, name=name, requester=requester),
            waits_for_image=not request.is_for_brokers,
            timeout_ms=self._wait_ms(message),
            answer_timeout_ms=self._answer_timeout_ms(request),
            attempts=_Attempts(change, was_asked=was_asked),
        )
        if request.is_for_brokers and response.error_code:
            raise KafkaError(ErrorCode(int(response.error_code)))
        return cast(ResponseT, response)

    def limit_wait(self) -> None:
        self._timeout_ms = min(self._timeout_ms, SHORTEST_WAIT_MS)
        end_s = asyncio.get_running_loop().time() + SHORTEST_WAIT_MS / 1000
        for wait in self._waits:
            until_s = wait.when()
            if not wait.expired() and until_s is not None and until_s > end_s:
                wait.reschedule(end_s)

    async def describe_quorum(self, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
        """The leader's own answer, or that of a voter without a quorum. Raises KafkaError as `submit` does."""
        without_quorum: list[DescribeQuorumResponse] = []

        async def ask(connection: Connection, message: Request, timeout_ms: int) -> tuple[Response, int] | None:
            response = await connection.call(message, timeout_ms=timeout_ms)
            assert isinstance(response, DescribeQuorumResponse)
            if _says_no_quorum(response):
                without_quorum[:] = [response]
            return (response, 0) if _is_of_leader(response) else None

        try:
            response = await self._call(
                request,
                ask,
                waits_for_image=False,
                timeout_ms=self._timeout_ms,
                answer_timeout_ms=self._timeout_ms,
                attempts=_Attempts(None),
            )
        except KafkaError:
            if not without_quorum:
                raise
            return without_quorum[-1]
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
        exchange: Exchange,
        *,
        waits_for_image: bool,
        timeout_ms: int,
        answer_timeout_ms: int,
        attempts: _Attempts,
    ) -> Any:
        """As a client would, it asks again while there is no controller, until the time of a request is over."""
        answer: tuple[Response | None, int] | None = None
        try:
            async with self._wait(timeout_ms), self._turn:
                try:
                    answer = await self._ask_voters(message, exchange, answer_timeout_ms, attempts)
                except _DeniedError as denied:
                    await self._metadata.wait_for(denied.image_offset)
                    if attempts.is_answer_lost:
                        why = "an attempt whose answer was lost may have been allowed what the next one was not"
                        message_text = f"It is not known whether it was done: {why}."
                        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, message_text) from None
                    raise PermissionsChangedError from None
                if waits_for_image:
                    await self._metadata.wait_for(answer[1])
        except TimeoutError:
            if answer is None and not attempts.has_done(message):
                # A voter that refuses this node says more than that others do not answer.
                reason = attempts.refusal or self._no_quorum() or attempts
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"The controller did not answer: {reason}.") from None
            # It is committed: an error would have the client ask for it a second time.
            logger.info(
                "Metadata has not reached the offset of the change: api=%s reason=%s", type(message).__name__, attempts
            )
        response = None if answer is None else answer[0]
        # Without a response the log alone tells that all of it is done, though no attempt is known to be lost.
        if attempts.change is not None and (attempts.is_answer_lost or response is None):
            return whole_answer(message, response, attempts.change.topics, self._metadata.image)
        return response

    @asynccontextmanager
    async def _wait(self, timeout_ms: int) -> AsyncIterator[None]:
        """Raises TimeoutError after so long, or earlier when `limit_wait` says so."""
        async with asyncio.timeout(timeout_ms / 1000) as wait:
            self._waits.add(wait)
            try:
                yield
            finally:
                self._waits.discard(wait)

    async def _ask_voters(
        self, message: Request, exchange: Exchange, answer_timeout_ms: int, attempts: _Attempts
    ) -> tuple[Response | None, int]:
        """The answer of the active controller, as `_ask_again` has it; ends by being cancelled otherwise."""
        choice, loop = self._choice, asyncio.get_running_loop()
        while True:
            leader_id = self._leader_id()
            voter_id = choice.choose(leader_id, int(loop.time() * 1000))
            is_sent = False
            try:
                lost = partial(self._lost, voter_id, leader_id)
                connection = await self._connect(voter_id, lost)
                is_sent = True
                answer = await answer_unless(
                    self._ask_again(connection, message, exchange, answer_timeout_ms, attempts)
                    if attempts.is_answer_lost and attempts.change is not None
                    else exchange(connection, message, answer_timeout_ms),
                    lost,
                    check_ms=LEADER_CHECK_MS,
                )
                if answer is not None:
                    choice.on_useful(voter_id)
                    return answer
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
            await self._link.close()
            if self._leader_id() in (None, voter_id) or choice.is_round_over(int(loop.time() * 1000)):
                await self._pause(leader_id)

    async def _pause(self, leader_id: NodeId | None) -> None:
        """Until it is time to ask again, or another one than `leader_id` leads."""
        for _ in range(RETRY_MS // _NAME_CHECK_MS):
            await asyncio.sleep(_NAME_CHECK_MS / 1000)
            if self._leader_id() not in (None, leader_id):
                return

    async def _ask_again(
        self, connection: Connection, message: Request, exchange: Exchange, answer_timeout_ms: int, attempts: _Attempts
    ) -> tuple[Response | None, int] | None:
        """As `Exchange`, for what the attempts before have not done; None in place of a response when that is nothing.

        Raises KafkaError(REQUEST_TIMED_OUT) when that cannot be known any more.
        """
        assert attempts.change is not None
        known = await exchange(connection, BARRIER, answer_timeout_ms)
        if known is None:
            return None
        await self._metadata.wait_for(known[1])
        if not attempts.change.is_certain:
            why = "this node has a snapshot in place of what the last controllers did"
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"It is not known whether it was done: {why}.")
        left = remaining(message, attempts.change.topics)
        return (None, known[1]) if left is None else await exchange(connection, left, answer_timeout_ms)

    def _lost(self, voter_id: NodeId, leader_id: NodeId | None) -> str | None:
        """Why the answer of the voter will not come: another one leads than when it was asked."""
        is_deposed = self._leader_id() not in (None, voter_id, leader_id)
        return f"node {voter_id} is not the active controller any more" if is_deposed else None

    async def close(self) -> None:
        await self._link.close()

    async def _connect(self, voter_id: NodeId, lost: Callable[[], str | None]) -> Connection:
        voter = self._voters[voter_id]
        address = (voter.host, voter.port)
        connection = self._link.open_connection(voter_id, address)
        if connection is None:
            connecting = self._link.connect(voter_id, address, timeout_ms=self._times.request_timeout_ms)
            connection = await answer_unless(connecting, lost, check_ms=LEADER_CHECK_MS)
        return connection


class _DeniedError(Exception):
    """The ACLs of the controller's image, at that offset, do not allow what the client asks for."""

    def __init__(self, image_offset: int) -> None:
        super().__init__(image_offset)
        self.image_offset = image_offset


class _Attempts:
    """Of one request: why the voters that were asked were of no use, and whether one of them may have done it."""

    def __init__(self, change: WatchedChange | None, *, was_asked: bool = False) -> None:
        """`change` is of a request that is not to be done twice; `was_asked`: it was asked for already."""
        self.change = change
        self.is_answer_lost = was_asked
        self.last = "no controller could be reached"
        self.refusal: str | None = None

    def has_done(self, message: Request) -> bool:
        """Whether all that was asked for has been seen in the log."""
        return self.change is not None and remaining(message, self.change.topics) is None

    def __str__(self) -> str:
        """What a voter has against this node says more than that another one does not lead."""
        return self.refusal or self.last


async def _exchange(
    connection: Connection, message: Request, timeout_ms: int, *, name: str, requester: Requester | None
) -> tuple[Response, int] | None:
    response, tags = await connection.call_tagged(
        message,
        timeout_ms=timeout_ms,
        client_id=name or None,
        header_tags=NO_HEADER_TAGS if requester is None else encode_requester_tags(encode_requester(requester)),
    )
    outcome = read_outcome(tags)
    if outcome.error_code == ErrorCode.NOT_CONTROLLER:
        return None
    if requester is not None and outcome.error_code == PermissionsChangedError.CODE:
        raise _DeniedError(outcome.image_offset)
    return response, outcome.image_offset


def _is_of_leader(response: DescribeQuorumResponse) -> bool:
    codes = {int(response.error_code)}
    codes.update(int(partition.error_code) for topic in response.topics for partition in topic.partitions)
    return not codes & _NOT_LEADER


def _says_no_quorum(response: DescribeQuorumResponse) -> bool:
    return any(
        (partition.error_message or "").startswith(NO_QUORUM)
        for topic in response.topics
        for partition in topic.partitions
    )
