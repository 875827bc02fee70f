"""Configs of topics, of single brokers and of all brokers."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from .resources import CollectionMetadata, ResourceMetadata

ALTERED_MAX = 1_000


class ConfigSynonym(Struct, kw_only=True):
    """Confluent's `ConfigSynonymData`."""

    name: str
    value: str | None
    source: str


class Config(Struct, kw_only=True):
    """Confluent's `AbstractConfigData`. The value of a sensitive config is None."""

    metadata: ResourceMetadata
    cluster_id: str
    name: str
    value: str | None
    is_default: bool
    is_read_only: bool
    is_sensitive: bool
    source: str
    synonyms: list[ConfigSynonym]


class ClusterConfig(Config, kw_only=True):
    """Confluent's `ClusterConfigData`: what all brokers have unless they have their own."""

    kind: Literal["KafkaClusterConfig"] = "KafkaClusterConfig"
    config_type: Literal["BROKER"] = "BROKER"


class ClusterConfigList(Struct, kw_only=True):
    """Confluent's `ClusterConfigDataList`."""

    kind: Literal["KafkaClusterConfigList"] = "KafkaClusterConfigList"
    metadata: CollectionMetadata
    data: list[ClusterConfig]


class BrokerConfig(Config, kw_only=True):
    """Confluent's `BrokerConfigData`."""

    kind: Literal["KafkaBrokerConfig"] = "KafkaBrokerConfig"
    broker_id: int


class BrokerConfigList(Struct, kw_only=True):
    """Confluent's `BrokerConfigDataList`."""

    kind: Literal["KafkaBrokerConfigList"] = "KafkaBrokerConfigList"
    metadata: CollectionMetadata
    data: list[BrokerConfig]


class TopicConfig(Config, kw_only=True):
    """Confluent's `TopicConfigData`."""

    kind: Literal["KafkaTopicConfig"] = "KafkaTopicConfig"
    topic_name: str


class TopicConfigList(Struct, kw_only=True):
    """Confluent's `TopicConfigDataList`."""

    kind: Literal["KafkaTopicConfigList"] = "KafkaTopicConfigList"
    metadata: CollectionMetadata
    data: list[TopicConfig]


class DefaultTopicConfig(Config, kw_only=True):
    """Confluent's `TopicDefaultConfigData`: what a topic has without configs of its own."""

    kind: Literal["KafkaTopicDefaultConfig"] = "KafkaTopicDefaultConfig"
    topic_name: str


class DefaultTopicConfigList(Struct, kw_only=True):
    """Confluent's `TopicDefaultConfigDataList`."""

    kind: Literal["KafkaTopicDefaultConfigList"] = "KafkaTopicDefaultConfigList"
    metadata: CollectionMetadata
    data: list[DefaultTopicConfig]


class UpdateConfig(Struct, kw_only=True):
    """Confluent's `UpdateConfigRequestData`."""

    value: str | None = None


class AlteredConfig(Struct, kw_only=True):
    """One change; without an operation it sets."""

    name: str
    value: str | None = None
    operation: Literal["SET", "DELETE", "APPEND", "SUBTRACT"] | None = None


class AlterConfigs(Struct, kw_only=True):
    """Confluent's `AlterConfigBatchRequestData`: all of it is done, or nothing."""

    data: Annotated[list[AlteredConfig], Meta(max_length=ALTERED_MAX)]
    validate_only: bool = False
