"""The logs of a broker, loaded at its start, and the parts that follow the metadata from then on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

from ...protocol.errors import ConfigError
from ...protocol.ids import TopicId
from ...quorum.metadata.image import MetadataImage
from ...quorum.metadata.publishers import MetadataPublisher, Publishers
from ...storage.directories.log_directories import LogDirectories
from ...storage.directories.log_manager import LogManager
from ..configuration.node_config import NodeConfig
from ..configuration.topic_configs import ConfigResolver
from .cordons import Cordons
from .moved_replicas import MoveWatch
from .wiring import BrokerParts


async def load_logs(
    config: NodeConfig,
    parts: BrokerParts,
    logs: LogManager,
    directories: LogDirectories,
    publishers: Publishers,
    image: MetadataImage,
    followers: Sequence[MetadataPublisher],
    loop: asyncio.AbstractEventLoop,
) -> None:
    """Configs first: a log is opened with what its topic says. Partitions last: they take the logs as loaded.

    `image` is what the node has replayed; `followers` hear of the metadata behind its own parts.
    Raises ConfigError for topics that need a tier on a node without one.
    """
    publishers.add(parts.configs)
    publishers.add(parts.telemetry)
    _check_tiers(config, parts.configs, image)

    def is_stray(topic: str, index: int, topic_id: TopicId | None) -> bool:
        found = image.topics.by_name.get(topic)
        if found is None or topic_id not in (None, found.topic_id) or index >= len(found.partitions):
            return True
        return config.node_id not in found.partitions[index].replicas

    def assigned_directory(key: tuple[str, int]) -> UUID | None:
        found = image.topics.partition(*key)
        return None if found is None else found.directory_of(config.node_id)

    cordons = Cordons(directories, parts.configs, parts.lifecycle)
    cordons.apply(image)
    await logs.load(
        loop,
        config_of=lambda topic: parts.configs.log_config(image, topic),
        is_stray=is_stray,
        assigned_directory=assigned_directory,
    )
    own: Sequence[MetadataPublisher] = (
        parts.throttles,
        parts.partitions,
        parts.groups,
        parts.transactions,
        parts.directories,
        MoveWatch(parts.mover),
        cordons,
    )
    for follower in (*own, *followers):
        publishers.add(follower)


def _check_tiers(config: NodeConfig, configs: ConfigResolver, image: MetadataImage) -> None:
    """Without its tier, a log would start on its disk, and what is up there would be deleted. ConfigError."""
    if config.tier.is_enabled:
        return
    for name, topic in image.topics.by_name.items():
        is_here = any(config.node_id in partition.replicas for partition in topic.partitions)
        if is_here and configs.log_config(image, name).remote_storage_enable:
            raise ConfigError(
                f"Topic {name} has remote.storage.enable=true. You have to delete all topics with the property "
                "remote.storage.enable=true before disabling tiered storage cluster-wide."
            )
