"""What the metadata on a node's disk say of a topic, for commands that work where no node runs."""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol.ids import TopicId
from ...quorum.configs.effective import topic_values
from ...quorum.inspection.stored_metadata import MetadataUnreadable, open_folder
from ...quorum.metadata.image import ConfigResource, ConfigResourceType, MetadataImage
from ...storage.disk.files import Files
from ...storage.log.rules.config import LogConfig
from ..configuration.topic_configs import make_log_config


def read_image(files: Files, folder: str) -> MetadataImage | None:
    """The last metadata in a log directory, or in its folder `__cluster_metadata-0`; None when there are none of
    Penstock, as in a directory of Apache Kafka."""
    try:
        return open_folder(files, folder).image_at().image
    except MetadataUnreadable:
        return None


def topic_configs_in(image: MetadataImage | None, topic: str) -> Mapping[str, str] | None:
    """What is set for the topic; None for one that the metadata do not know."""
    if image is None or image.topics.by_name.get(topic) is None:
        return None
    return image.configs.of(ConfigResource(ConfigResourceType.TOPIC, topic))


def topic_id_in(image: MetadataImage | None, topic: str) -> TopicId | None:
    """None for a topic that the metadata do not know."""
    found = None if image is None else image.topics.by_name.get(topic)
    return None if found is None else found.topic_id


def log_config_of(values: Mapping[str, str]) -> LogConfig:
    """Of a topic with these configs; the defaults are Kafka's, not what its brokers say. ConfigError."""
    return make_log_config(topic_values({}, values))
