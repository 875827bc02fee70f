"""What has configs: a topic, a broker or all brokers together, described and altered by Kafka's requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult, DescribeConfigsResponse
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.schema.types import TopicName
from kio.static.primitive import i8, i16, i32
from msgspec import Struct

from ....protocol.rest.configs import AlterConfigs, AlteredConfig, ConfigSynonym
from ....quorum.configs.effective import ConfigSource
from ....quorum.metadata.image import ConfigResourceType
from ..operation import Call, HttpError
from ..rules.kafka_answers import check
from . import links

SET: Final = "SET"
DELETE: Final = "DELETE"
_OPERATIONS: Final = {SET: 0, DELETE: 1, "APPEND": 2, "SUBTRACT": 3}
"""Kafka: `AlterConfigOp.OpType`."""


class ConfigHolder(Struct, frozen=True, kw_only=True):
    """A resource by Kafka's kind and name; `broker_id` is the broker that has to be asked, None where any will do."""

    kind: ConfigResourceType
    name: str
    broker_id: int | None = None

    async def describe(self, call: Call, *keys: str) -> Sequence[DescribeConfigsResourceResult]:
        """Its configs, or those of `keys`, by name. Raises KafkaError."""
        request = DescribeConfigsRequest(
            resources=(
                DescribeConfigsResource(
                    resource_type=i8(self.kind), resource_name=self.name, configuration_keys=keys or None
                ),
            ),
            include_synonyms=True,
        )
        answer = await self._ask(call, request, DescribeConfigsResponse)
        (result,) = answer.results
        check(result.error_code, result.error_message)
        return sorted(result.configs, key=lambda config: config.name)

    async def describe_one(self, call: Call, key: str) -> DescribeConfigsResourceResult:
        """Raises HttpError 404, KafkaError."""
        for config in await self.describe(call, key):
            if config.name == key:
                return config
        raise HttpError(404, "Not Found", f"There is no config {key!r} here.")

    async def set(self, call: Call, key: str, value: str | None) -> None:
        await self.alter(call, AlterConfigs(data=[AlteredConfig(name=key, value=value)]))

    async def reset(self, call: Call, key: str) -> None:
        await self.alter(call, AlterConfigs(data=[AlteredConfig(name=key, operation=DELETE)]))

    async def alter(self, call: Call, changes: AlterConfigs) -> None:
        """All of them or none. Raises KafkaError."""
        configs = tuple(
            AlterableConfig(name=one.name, config_operation=i8(_OPERATIONS[one.operation or SET]), value=one.value)
            for one in changes.data
        )
        request = IncrementalAlterConfigsRequest(
            resources=(AlterConfigsResource(resource_type=i8(self.kind), resource_name=self.name, configs=configs),),
            validate_only=changes.validate_only,
        )
        answer = await self._ask(call, request, IncrementalAlterConfigsResponse)
        (result,) = answer.responses
        check(result.error_code, result.error_message)

    async def _ask(self, call: Call, request: Any, answer: type[Any]) -> Any:
        if self.broker_id is None:
            return await call.node.ask(request, answer, call.context)
        return await call.node.ask_broker(self.broker_id, request, answer, call.context)


def of_topic(name: str) -> ConfigHolder:
    return ConfigHolder(kind=ConfigResourceType.TOPIC, name=name)


def of_broker(broker_id: int) -> ConfigHolder:
    """A broker describes and checks its own configs: only it has the static ones."""
    return ConfigHolder(kind=ConfigResourceType.BROKER, name=str(broker_id), broker_id=broker_id)


OF_ALL_BROKERS: Final = ConfigHolder(kind=ConfigResourceType.BROKER, name="")


def common_fields(
    call: Call, cluster_id: str, config: DescribeConfigsResourceResult, *segments: object
) -> dict[str, Any]:
    """The fields that the configs of all resources have; `segments` lead to this one."""
    return {
        "metadata": links.metadata(call, cluster_id, *segments),
        "cluster_id": cluster_id,
        "name": config.name,
        "value": config.value,
        "is_default": int(config.config_source) == ConfigSource.DEFAULT_CONFIG,
        "is_read_only": config.read_only,
        "is_sensitive": config.is_sensitive,
        "source": ConfigSource(int(config.config_source)).name,
        "synonyms": [
            ConfigSynonym(name=one.name, value=one.value, source=ConfigSource(int(one.source)).name)
            for one in config.synonyms
        ],
    }


def is_own_alone(config: DescribeConfigsResourceResult) -> bool:
    """Whether a topic has it, and its synonyms do not say what would be in effect without.

    So Kafka describes `retention.ms` where only the default of `log.retention.hours` stands behind it.
    """
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG
    return int(config.config_source) == own and all(int(one.source) == own for one in config.synonyms)


async def defaults_of_new_topic(call: Call, topic_id: object) -> dict[str, tuple[str | None, str]]:
    """Value and source of each config that a topic would have which were created without any (KIP-525).

    `topic_id`: of a topic, to make a name that is free. Raises KafkaError.
    """
    new = CreatableTopic(
        name=TopicName(f"defaults-{topic_id}"),
        num_partitions=i32(-1),
        replication_factor=i16(-1),
        assignments=(),
        configs=(),
    )
    # The node's own question: to know defaults the client need not be allowed to create a topic.
    request = CreateTopicsRequest(topics=(new,), validate_only=True)
    answer = await call.node.ask(request, CreateTopicsResponse, call.node.own_context)
    (result,) = answer.topics
    check(result.error_code, result.error_message)
    return {one.name: (one.value, ConfigSource(int(one.config_source)).name) for one in result.configs or ()}


def without_own(fields: dict[str, Any], defaults: Mapping[str, tuple[str | None, str]]) -> dict[str, Any]:
    """The same of a topic that has no configs of its own: the next of the synonyms is in effect, or the default."""
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.name
    synonyms = [one for one in fields["synonyms"] if one.source != own]
    if fields["source"] == own:
        value, source = (synonyms[0].value, synonyms[0].source) if synonyms else defaults[fields["name"]]
        is_default = source == ConfigSource.DEFAULT_CONFIG.name
        fields = {**fields, "value": value, "source": source, "is_default": is_default}
    return {**fields, "synonyms": synonyms}
