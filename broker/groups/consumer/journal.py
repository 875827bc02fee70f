"""Writes the changes of consumer groups down and carries them out, in that order; and replays them."""

from __future__ import annotations

from collections.abc import Sequence

from ...coordination.ports import StateLog, StateRecord
from ..group_counters import GroupCounters
from .changes import GroupChange, GroupEpochChange, apply, to_record
from .group import ConsumerGroup
from .group_table import GroupTable


class ConsumerJournal:
    def __init__(self, groups: GroupTable, log: StateLog, counters: GroupCounters) -> None:
        self._groups = groups
        self._log = log
        self._counters = counters

    def write(
        self, changes: Sequence[GroupChange], *, before: Sequence[StateRecord] = (), after: Sequence[StateRecord] = ()
    ) -> None:
        """As one batch, with records of others `before` and `after` it, which those carry out.

        Raises KafkaError, and then nothing is changed.
        """
        records = [*before, *map(to_record, changes), *after]
        if records:
            self._log.append(records)
        for change in changes:
            self._counters.consumer_rebalances += isinstance(change, GroupEpochChange) and not change.is_removal
            self.replay(change)

    def replay(self, change: GroupChange) -> None:
        group = self._groups.find_consumer(change.group)
        is_removal = change.is_removal
        if group is None:
            if is_removal:
                return
            group = ConsumerGroup(change.group)
            self._groups.put_consumer(group)
        if is_removal and isinstance(change, GroupEpochChange):
            self._groups.forget_consumer(change.group)
        else:
            apply(group, change)
