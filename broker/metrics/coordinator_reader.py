"""Groups and transactions. Kafka: `GroupCoordinatorMetrics`."""

from __future__ import annotations

from collections import Counter

from ..coordinators.group_coordinator import GroupCoordinator
from ..coordinators.transaction_coordinator import TransactionCoordinator
from ..groups.classic.group import ClassicState
from ..groups.consumer.group import ConsumerGroupState
from ..transactions.transaction_state import TransactionState
from .rules import coordinator_metrics as metrics
from .rules.metric import Metric, Reading, read
from .rules.readings import WALKED_PER_TURN, Readings

CLASSIC: dict[ClassicState, Metric] = {
    ClassicState.EMPTY: metrics.GROUPS_EMPTY,
    ClassicState.PREPARING_REBALANCE: metrics.GROUPS_PREPARING,
    ClassicState.COMPLETING_REBALANCE: metrics.GROUPS_COMPLETING,
    ClassicState.STABLE: metrics.GROUPS_STABLE,
}


class GroupReader:
    def __init__(self, groups: GroupCoordinator) -> None:
        self._groups = groups

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


class TransactionReader:
    def __init__(self, transactions: TransactionCoordinator) -> None:
        self._transactions = transactions

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
