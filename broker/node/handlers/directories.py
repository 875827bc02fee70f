"""Log directories, and replicas that move between them."""

from __future__ import annotations

from ...apis import alter_replica_log_dirs, describe_log_dirs
from ...network.handlers import Handlers
from .dependencies import HandlerDependencies


def register(handlers: Handlers, parts: HandlerDependencies) -> None:
    partitions = parts.data_path.partitions
    alter_replica_log_dirs.register(handlers, partitions, parts.directories, parts.directory_choice.prefer, parts.mover)
    describe_log_dirs.register(handlers, partitions, parts.directories, parts.files, parts.futures)
