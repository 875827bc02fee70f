"""Groups and transactions. Kafka: `GroupCoordinatorMetrics`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ..coordinators.group_coordinator import GroupCoordinator
from ..coordinators.transaction_coordinator import TransactionCoordinator
from ..coordinators.transaction_verifier import TransactionVerifier
from ..groups.classic.group import ClassicState
from ..groups.consumer.group import ConsumerGroupState
from ..transactions.transaction_state import TransactionState
from .rules import coordinator_metrics as metrics
from .rules.metric import Metric, Reading, read, summary_of
from .rules.readings import WALKED_PER_TURN, Readings

CLASSIC: dict[ClassicState, Metric] = {
    ClassicState.EMPTY: metrics.GROUPS_EMPTY,
    ClassicState.PREPARING_REBALANCE: metrics.GROUPS_PREPARING,
    ClassicState.COMPLETING_REBALANCE: metrics.GROUPS_COMPLETING,
    ClassicState.STABLE: metrics.GROUPS_STABLE,
}


class GroupReader:
    def __init__(self, groups: GroupCoordinator, now_ms: Callable[[], int]) -> None:
        """`now_ms` is the loop's clock."""
        self._groups = groups
        self._now_ms = now_ms

    def __call__(self) -> Readings:
        classic: Counter[ClassicState] = Counter()
        consumer: Counter[ConsumerGroupState] = Counter()
        members: Counter[str] = Counter(classic=0, consumer=0)
        offsets = walked = loading = 0
        contexts = list(self._groups.coordinators)
        for context in contexts:
            if not context.is_active:
                loading += 1
                continue
            shard = context.shard
            for group in list(shard.groups):
                classic[group.state] += 1
                members["classic"] += len(group.members)
                offsets += shard.offsets.count_of(group.id)
                walked += 1
                if walked % WALKED_PER_TURN == 0:
                    yield None
            for consumer_group in list(shard.groups.consumer_groups):
                consumer[consumer_group.state] += 1
                members["consumer"] += len(consumer_group.members)
                offsets += shard.offsets.count_of(consumer_group.id)
                walked += 1
                if walked % WALKED_PER_TURN == 0:
                    yield None
            yield None
        yield read(metrics.GROUP_COUNT, classic.total() + consumer.total())
        for state, metric in CLASSIC.items():
            yield read(metric, classic[state])
        yield read(metrics.OFFSET_COUNT, offsets)
        yield Reading(metrics.GROUPS_BY_PROTOCOL, [(("classic",), classic.total()), (("consumer",), consumer.total())])
        yield Reading(metrics.CLASSIC_GROUPS, [((state.value,), classic[state]) for state in ClassicState])
        yield Reading(metrics.CONSUMER_GROUPS, [((state.value,), consumer[state]) for state in ConsumerGroupState])
        yield Reading(metrics.MEMBERS, [((protocol,), count) for protocol, count in members.items()])
        yield Reading(metrics.PARTITIONS, [(("loading",), loading), (("active",), len(contexts) - loading)])
        counters = self._groups.counters
        yield read(metrics.OFFSET_COMMITS, counters.offset_commits)
        yield read(metrics.OFFSET_EXPIRATIONS, counters.offset_expirations)
        yield read(metrics.OFFSET_DELETIONS, counters.offset_deletions)
        yield read(metrics.CLASSIC_REBALANCES, counters.classic_rebalances)
        yield read(metrics.CONSUMER_REBALANCES, counters.consumer_rebalances)
        average_ms, longest_ms = self._groups.load_times.average_and_max(self._now_ms())
        yield read(metrics.LOAD_TIME_AVG, average_ms)
        yield read(metrics.LOAD_TIME_MAX, longest_ms)


class TransactionReader:
    def __init__(
        self, transactions: TransactionCoordinator, verifier: TransactionVerifier, now_ms: Callable[[], int]
    ) -> None:
        """`now_ms` is the loop's clock."""
        self._transactions = transactions
        self._verifier = verifier
        self._now_ms = now_ms

    def __call__(self) -> Readings:
        states: Counter[TransactionState] = Counter()
        contexts = list(self._transactions.coordinators)
        for context in contexts:
            if not context.is_active:
                continue
            for walked, transaction in enumerate(context.shard):
                states[transaction.state] += 1
                if walked % WALKED_PER_TURN == 0:
                    yield None
        yield Reading(metrics.TRANSACTIONAL_IDS, [((state.value,), states[state]) for state in TransactionState])
        yield read(metrics.TRANSACTION_PARTITIONS, len(contexts))
        now_ms = self._now_ms()
        average_ms, longest_ms = self._transactions.load_times.average_and_max(now_ms)
        yield read(metrics.TRANSACTION_LOAD_TIME_AVG, average_ms)
        yield read(metrics.TRANSACTION_LOAD_TIME_MAX, longest_ms)
        yield read(metrics.UNLED_MARKERS, self._transactions.unled_marker_count)
        yield read(metrics.VERIFICATION_TIME, summary_of([self._verifier.times], now_ms))
        yield read(metrics.VERIFICATION_FAILURES, self._verifier.failure_count)
