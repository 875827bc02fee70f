"""Asks coordinators whether transactions have the partitions that are written to here, or has these added (KIP-890).

Kafka: `AddPartitionsToTxnManager`.

A partition that a transaction has records in already is not asked about. For the others the leader makes a
`TransactionVerification` first, then asks, and appends only with that object: the end of the transaction drops it.
Questions to one node go together, one request at a time; a transactional id is in a request once, so what it asks
meanwhile goes with the next.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, Protocol, TypeAlias

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import Request, Response
from ...quorum.metadata.image import MetadataImage
from ...storage.log.rules.transaction_verification import UNVERIFIED, TransactionVerification
from ..coordination.key_partitions import partition_of_key
from ..replicas.partition import Partition
from ..timing.rules.duration_histogram import NS_PER_S, DurationHistogram
from ..timing.runtime import Runtime
from .rules.transaction_writer import Place, TransactionSupport, TransactionWriter
from .transaction_coordinator import TRANSACTIONS_TOPIC

logger = logging.getLogger(__name__)

Outcome: TypeAlias = TransactionVerification | KafkaError | None
"""Of a partition: what its append is to bring, or why there is to be none. None while the transaction goes on there."""
Outcomes: TypeAlias = Mapping[Partition, Outcome]


class Peers(Protocol):
    """What is needed of `peer_channel.py`."""

    async def request(self, broker_id: int, message: Request) -> Response:
        """Raises KafkaError."""


class VerificationConfig(NamedTuple):
    is_enabled: bool
    """`transaction.partition.verification.enable`; partitions are added to transactions nevertheless."""
    retry_backoff_ms: int
    """`add.partitions.to.txn.retry.backoff.ms`"""
    retry_ms_max: int
    """`add.partitions.to.txn.retry.backoff.max.ms`: so long a transaction is waited for that ends before this one."""


class TransactionVerifier:
    def __init__(
        self,
        peers: Peers,
        image: Callable[[], MetadataImage],
        config: Callable[[], VerificationConfig],
        *,
        runtime: Runtime,
    ) -> None:
        """`image` is the newest one."""
        self._peers = peers
        self._image = image
        self._config = config
        self._loop = runtime.loop
        self._steady_clock_ms = runtime.steady_clock_ms
        self._questions: dict[int, list[_Question]] = {}
        # By node: kept, since the loop holds tasks weakly.
        self._in_flight: dict[int, asyncio.Task[None]] = {}
        self.times = DurationHistogram()
        """From a request to a coordinator to its answer."""
        self.failure_count = 0
        """Partitions that were not verified, since start."""

    def close(self) -> None:
        """The node stops: pending verifications are dropped."""
        for task in self._in_flight.values():
            task.cancel()

    def begin(self, writer: TransactionWriter, batches: Mapping[Partition, int]) -> dict[Partition, Outcome]:
        """What the partitions say; `batches` has the first sequence for each. Those that have a verification are to be
        confirmed before anything is appended to them; see `needs_confirmation`."""
        outcomes: dict[Partition, Outcome] = {}
        is_verified = self._config().is_enabled or writer.support.adds_partitions
        for partition, sequence in batches.items():
            try:
                outcomes[partition] = (
                    partition.begin_verification(
                        writer.producer_id,
                        writer.producer_epoch,
                        sequence,
                        has_epoch_bumps=writer.support.adds_partitions,
                        now_ms=self._steady_clock_ms(),
                    )
                    if is_verified
                    else UNVERIFIED
                )
            except KafkaError as error:
                outcomes[partition] = KafkaError(error.code)
        return outcomes

    def confirm(
        self,
        writer: TransactionWriter,
        batches: Mapping[Partition, int],
        outcomes: Outcomes,
        on_confirmed: Callable[[Outcomes], None],
    ) -> None:
        """Asks the coordinator about `outcomes`, those of `begin`. `on_confirmed` is called once, at once or later,
        with what is left of them: errors are those of the protocol between brokers.

        A transaction before this one that is about to end is waited for, though not for long.
        """
        _Confirmation(self, writer, batches, on_confirmed).ask(outcomes)

    # For confirmations.

    @property
    def config(self) -> VerificationConfig:
        return self._config()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def ask(
        self, writer: TransactionWriter, places: Iterable[Place], on_answer: Callable[[Mapping[Place, ErrorCode]], None]
    ) -> None:
        """`on_answer` receives the errors, by partition."""
        question = _Question(writer, tuple(places), on_answer)
        node_id = self._coordinator_of(writer.transactional_id)
        if node_id is None:
            question.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        self._questions.setdefault(node_id, []).append(question)
        if node_id not in self._in_flight:
            self._send(node_id)

    def _coordinator_of(self, transactional_id: str) -> int | None:
        image = self._image()
        topic = image.topics.by_name.get(TRANSACTIONS_TOPIC)
        if topic is None:
            return None
        leader = topic.partitions[partition_of_key(transactional_id, len(topic.partitions))].leader
        broker = image.brokers.get(leader)
        return None if broker is None or broker.is_fenced else leader

    def _send(self, node_id: int) -> None:
        asked: dict[str, _Question] = {}
        left: list[_Question] = []
        size_bytes = 0
        for question in self._questions.pop(node_id):
            transactional_id = question.writer.transactional_id
            size_bytes += question.size_bytes
            if transactional_id in asked or (asked and size_bytes > REQUEST_BYTES_MAX):
                left.append(question)
            else:
                asked[transactional_id] = question
        if left:
            self._questions[node_id] = left
        self._in_flight[node_id] = self._loop.create_task(self._ask_node(node_id, asked))

    async def _ask_node(self, node_id: int, asked: Mapping[str, _Question]) -> None:
        # A node that no transaction writes to starts without loading it.
        from .rules.verification_request import errors_of, verification_request

        answers: Mapping[str, Mapping[Place, ErrorCode]] = {}
        failure = ErrorCode.NONE
        sent_s = self._loop.time()
        try:
            message = verification_request((one.writer, one.places) for one in asked.values())
            failure, answers = errors_of(await self._peers.request(node_id, message))
        except KafkaError as error:
            logger.warning("AddPartitionsToTxn request failed: coordinator=%d error=%s", node_id, error)
            failure = UNANSWERED.get(error.code, ErrorCode.NETWORK_EXCEPTION)
        except Exception:
            # The batches of these questions wait, and their connections with them: every question is answered.
            logger.exception("AddPartitionsToTxn request failed: coordinator=%d", node_id)
            failure = ErrorCode.NETWORK_EXCEPTION
        finally:
            del self._in_flight[node_id]
            self.times.add(round(NS_PER_S * (self._loop.time() - sent_s)))
        self.failure_count += (
            sum(error is not ErrorCode.NONE for errors in answers.values() for error in errors.values())
            if failure is ErrorCode.NONE
            else sum(len(question.places) for question in asked.values())
        )
        if node_id in self._questions:
            self._send(node_id)
        for transactional_id, question in asked.items():
            # Each in a step of its own: what goes wrong in one leaves the others alone.
            if failure is not ErrorCode.NONE:
                self._loop.call_soon(question.fail, TOP_ERRORS.get(failure, failure))
            else:
                self._loop.call_soon(question.answer, answers.get(transactional_id, {}))


REQUEST_BYTES_MAX: Final = 1024 * 1024
"""A fraction of what nodes take, so that long names of some clients do not get the whole request refused."""
MAX_BYTES_PER_CHARACTER: Final = 4
NUMBERS_BYTES: Final = 24
"""Beside the name of a transaction or of a topic."""
UNANSWERED: Final = {
    ErrorCode.BROKER_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.UNSUPPORTED_VERSION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""Of a request that was not sent, or that the node does not serve."""
TOP_ERRORS: Final = {ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ErrorCode.INVALID_TXN_STATE}
"""Clients are not told what brokers say of each other."""


class _Question(NamedTuple):
    writer: TransactionWriter
    places: tuple[Place, ...]
    on_answer: Callable[[Mapping[Place, ErrorCode]], None]

    @property
    def size_bytes(self) -> int:
        """In a request, at most."""
        names = (self.writer.transactional_id, *(topic for topic, _ in self.places))
        return sum(MAX_BYTES_PER_CHARACTER * len(name) + NUMBERS_BYTES for name in names)

    def fail(self, error: ErrorCode) -> None:
        self.on_answer(dict.fromkeys(self.places, error))

    def answer(self, errors: Mapping[Place, ErrorCode]) -> None:
        support = self.writer.support
        told = {}
        for place, error in errors.items():
            if error is ErrorCode.PRODUCER_FENCED:
                error = ErrorCode.INVALID_PRODUCER_EPOCH
            elif error is ErrorCode.TRANSACTION_ABORTABLE and support is TransactionSupport.OLD_ERRORS:
                error = ErrorCode.INVALID_TXN_STATE
            told[place] = error
        self.on_answer(told)


class _Confirmation:
    """One request's partitions, until their coordinator has said something that lasts."""

    def __init__(
        self,
        verifier: TransactionVerifier,
        writer: TransactionWriter,
        batches: Mapping[Partition, int],
        on_confirmed: Callable[[Outcomes], None],
    ) -> None:
        self._verifier = verifier
        self._writer = writer
        self._batches = batches
        self._on_confirmed = on_confirmed
        self._deadline_s = verifier.loop.time() + verifier.config.retry_ms_max / 1000

    def ask(self, outcomes: Outcomes) -> None:
        asked = {partition: one for partition, one in outcomes.items() if isinstance(one, TransactionVerification)}
        if not needs_confirmation(asked):
            self._on_confirmed(outcomes)
            return

        def on_answer(errors: Mapping[Place, ErrorCode]) -> None:
            confirmed = dict(outcomes)
            for partition in asked:
                error = errors.get((partition.topic, partition.index), ErrorCode.NONE)
                if error is not ErrorCode.NONE:
                    confirmed[partition] = KafkaError(error)
            self._judge(confirmed)

        self._verifier.ask(self._writer, ((partition.topic, partition.index) for partition in asked), on_answer)

    def _judge(self, outcomes: Outcomes) -> None:
        is_early = self._writer.support.adds_partitions and any(map(self._is_early, outcomes.items()))
        if not is_early:
            self._on_confirmed(outcomes)
        elif self._verifier.loop.time() < self._deadline_s:
            self._verifier.loop.call_later(self._verifier.config.retry_backoff_ms / 1000, self._ask_again)
        else:
            self._on_confirmed(
                {partition: self._at_deadline(partition, outcome) for partition, outcome in outcomes.items()}
            )

    def _is_early(self, item: tuple[Partition, Outcome]) -> bool:
        """The transaction before this one was ending, by the coordinator's word or because its end was written here
        meanwhile."""
        partition, outcome = item
        if isinstance(outcome, KafkaError):
            return outcome.code is ErrorCode.CONCURRENT_TRANSACTIONS
        return self._is_dropped(partition, outcome)

    def _is_dropped(self, partition: Partition, outcome: Outcome) -> bool:
        return isinstance(outcome, TransactionVerification) and not partition.holds_verification(
            self._writer.producer_id, outcome
        )

    def _at_deadline(self, partition: Partition, outcome: Outcome) -> Outcome:
        """A dropped verification lets no append in, and its INVALID_TXN_STATE is fatal to producers. The partition says
        what is true by now; where the coordinator must be asked again, the producer sends again."""
        if not self._is_dropped(partition, outcome):
            return outcome
        current = self._verifier.begin(self._writer, {partition: self._batches[partition]})[partition]
        return KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS) if needs_confirmation({partition: current}) else current

    def _ask_again(self) -> None:
        self.ask(self._verifier.begin(self._writer, self._batches))


def needs_confirmation(outcomes: Outcomes) -> bool:
    return any(isinstance(one, TransactionVerification) and one is not UNVERIFIED for one in outcomes.values())
