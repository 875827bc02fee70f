"""Where partitions begin and end, for consumers and followers."""

from __future__ import annotations

from ...apis import delete_records, fetch_producers, list_offsets, offset_for_leader_epoch
from ...network.handlers import Handlers
from .dependencies import HandlerDependencies


def register(handlers: Handlers, parts: HandlerDependencies) -> None:
    partitions = parts.data_path.partitions
    list_offsets.register(handlers, partitions, parts.tier)
    offset_for_leader_epoch.register(handlers, partitions)
    delete_records.register(handlers, partitions)
    fetch_producers.register(handlers, partitions)
