"""What followers need of the rooms beside this one."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from ...storage.log.rules.producer_entry import ProducerEntry
from ...storage.log.rules.tiered_history import TieredHistory
from ..replicas.partition import Partition


class FollowedLogs(Protocol):
    """`replicas/replica_manager.py`. Raises KafkaError when a disk fails."""

    def truncate(self, offsets: Mapping[Partition, int]) -> None: ...

    def restart(
        self,
        partition: Partition,
        offset: int,
        producers: Iterable[ProducerEntry],
        tiered: TieredHistory | None = None,
    ) -> None: ...

    def complete_waiting(self, partition: Partition) -> None: ...
