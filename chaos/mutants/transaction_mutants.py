"""Bugs of transactions, on either side of them, each as one patch; the simulation finds every one of them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from ...broker.coordinators.marker_sender import MarkerSender
from ...broker.transactions import transaction_shard
from ...broker.transactions.transaction_shard import TransactionShard
from ...protocol.errors import ErrorCode, KafkaError
from ...storage.log.reading import ReadableLog
from ...storage.log.rules.producer_state import ProducerState
from .edited import edited
from .mutant import Mutant


def _up_to_the_high_watermark(_: Any) -> Any:
    return lambda _state, high_watermark: high_watermark


def _none_aborted(_: Any) -> Any:
    return lambda _log, _start_offset, _end_offset: []


def _without_prepared(resume: Callable[[TransactionShard], None]) -> Any:
    def resume_without_prepared(shard: TransactionShard) -> None:
        patched: Any = shard
        patched._write_markers = lambda _entry: None
        resume(shard)
        del patched._write_markers

    return resume_without_prepared


def _of_any_epoch(_: Any) -> Any:
    def check(transaction: Any, producer: Any) -> None:
        if transaction.producer_id != producer.id:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)

    return check


MUTANTS: Final = (
    Mutant(
        name="marker-to-first-partition",
        bug="a transaction is complete when one of its partitions has the marker",
        owner=MarkerSender,
        attribute="write",
        make=edited(
            "self._queue(order, order.transaction.partitions)",
            "first, *others = sorted(order.transaction.partitions)\n"
            "    self._queue(order, (first,))\n"
            "    if others:\n"
            "        self._report_written(order, others)",
        ),
    ),
    Mutant(
        name="open-transactions-are-stable",
        bug="the last stable offset passes transactions that are open",
        owner=ProducerState,
        attribute="last_stable_offset",
        make=_up_to_the_high_watermark,
    ),
    Mutant(
        name="aborted-not-told",
        bug="readers of committed records are not told which transactions were aborted",
        owner=ReadableLog,
        attribute="aborted_transactions",
        make=_none_aborted,
    ),
    Mutant(
        name="prepared-forgotten-at-load",
        bug="a coordinator that loads a decided transaction does not carry it out",
        owner=TransactionShard,
        attribute="_resume",
        make=_without_prepared,
    ),
    Mutant(
        name="zombie-not-fenced",
        bug="a coordinator does not look at the epoch of a producer",
        owner=transaction_shard,
        attribute="_check_producer",
        make=_of_any_epoch,
    ),
)

BUGS: Final[Mapping[str, str]] = MappingProxyType({mutant.name: mutant.bug for mutant in MUTANTS})
"""What each is, by its name."""
