"""A session of requests about metadata, each asked once.

Clients that ask again by themselves are refused what they have just done, and a refusal has to be certain.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from random import Random
from typing import Any, Final

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_topics.v7.request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.types import TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta

from ...client.addresses import parse_addresses
from ...client.connection import Connection, connect
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.messages import Request
from .outcomes import NotDoneError, UnknownOutcomeError

# Longer than a broker waits for the controller.
_TIMEOUT_MS: Final = 5_000
_BROKER_DEFAULT: Final = -1
_TOPIC_RESOURCE: Final = 2
_SET: Final = 0
# With any other code, as REQUEST_TIMED_OUT or NOT_CONTROLLER, what was asked may be done yet.
_CERTAIN: Final = frozenset(
    {
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_REQUEST,
    }
)


class AdminSession:
    """With one of the nodes, drawn by `random`. Changes raise NotDoneError or UnknownOutcomeError, whose sentences
    begin with the name of the code; reads raise NotDoneError only."""

    def __init__(self, bootstrap: str, *, client_id: str, random: Random) -> None:
        """Raises NotDoneError where it does not answer."""
        self._runner = asyncio.Runner()
        address = random.choice(parse_addresses(bootstrap))
        try:
            self._connection: Connection = self._runner.run(
                connect(address.host, address.port, client_id=client_id, timeout_ms=_TIMEOUT_MS)
            )
        except (OSError, CorruptData, KafkaError) as error:
            self._runner.close()
            raise NotDoneError(str(error), is_broken=True) from error

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        topic = CreatableTopic(
            name=TopicName(name),
            num_partitions=i32(partitions),
            replication_factor=i16(_BROKER_DEFAULT),
            assignments=(),
            configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in configs.items()),
        )
        answer = self._change(CreateTopicsRequest(topics=(topic,), timeout=_wait()))
        self._check_change(answer.topics[0])

    def delete_topic(self, name: str) -> None:
        topic = DeleteTopicState(name=TopicName(name), topic_id=None)
        answer = self._change(DeleteTopicsRequest(topics=(topic,), timeout=_wait()))
        self._check_change(answer.responses[0])

    def create_partitions(self, name: str, total: int) -> None:
        topic = CreatePartitionsTopic(name=TopicName(name), count=i32(total), assignments=None)
        answer = self._change(CreatePartitionsRequest(topics=(topic,), timeout=_wait(), validate_only=False))
        self._check_change(answer.results[0])

    def set_config(self, name: str, key: str, value: str) -> None:
        resource = AlterConfigsResource(
            resource_type=i8(_TOPIC_RESOURCE),
            resource_name=name,
            configs=(AlterableConfig(name=key, config_operation=i8(_SET), value=value),),
        )
        answer = self._change(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
        self._check_change(answer.responses[0])

    def partitions(self, name: str) -> int | None:
        """How many the topic has; None without the topic."""
        question = MetadataRequest(
            topics=(MetadataRequestTopic(topic_id=None, name=TopicName(name)),),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        (topic,) = self._read(question).topics
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return None
        self._check_read(topic.error_code)
        return len(topic.partitions)

    def config(self, name: str, key: str) -> str | None:
        resource = DescribeConfigsResource(
            resource_type=i8(_TOPIC_RESOURCE), resource_name=name, configuration_keys=(key,)
        )
        (result,) = self._read(DescribeConfigsRequest(resources=(resource,))).results
        self._check_read(result.error_code)
        return next((one.value for one in result.configs if one.name == key), None)

    def rest(self, seconds: float) -> None:
        self._runner.run(asyncio.sleep(seconds))

    def close(self) -> None:
        self._runner.run(self._connection.close())
        self._runner.close()

    def _change(self, request: Request) -> Any:
        try:
            return self._runner.run(self._connection.call(request))
        except (OSError, CorruptData) as error:
            raise UnknownOutcomeError(f"NETWORK_EXCEPTION: {error}") from error

    def _read(self, request: Request) -> Any:
        try:
            return self._runner.run(self._connection.call(request))
        except (OSError, CorruptData) as error:
            raise NotDoneError(f"NETWORK_EXCEPTION: {error}", is_broken=True) from error

    @staticmethod
    def _check_change(result: Any) -> None:
        code = ErrorCode(int(result.error_code))
        if code is ErrorCode.NONE:
            return
        sentence = f"{code.name}: {result.error_message}"
        if code in _CERTAIN:
            raise NotDoneError(sentence)
        raise UnknownOutcomeError(sentence)

    @staticmethod
    def _check_read(code: int) -> None:
        if code:
            raise NotDoneError(ErrorCode(int(code)).name)


def _wait() -> i32Timedelta:
    return i32Timedelta.parse(timedelta(milliseconds=_TIMEOUT_MS))
