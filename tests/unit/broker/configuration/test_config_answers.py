"""The config APIs answer as Apache Kafka 4.3.1 did, request by request.

`kafka_config_answers.jsonl` was captured from a broker with the properties below. Each line is one request with Kafka's
answers; they build on each other. Configs are rows of name, value, source, type, flags (r read-only, s sensitive) and
synonyms, and a hash of the documentation where that was asked for. `differs` says why an answer here is another one.
`kafka_controller_logger_answers.jsonl` was captured in the same way from the listener of a controller.
"""

import asyncio
import hashlib
import json
import logging
from pathlib import Path
from random import Random
from typing import Any, TypeVar
from uuid import UUID

import pytest
from kio.schema.alter_configs.v2 import request as legacy
from kio.schema.alter_configs.v2.response import AlterConfigsResponse as LegacyResponse
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.incremental_alter_configs.v1 import request as incremental
from kio.schema.list_config_resources.v1.request import ListConfigResourcesRequest
from kio.static.primitive import i8

from penstock.broker.apis import alter_configs, config_results, describe_configs
from penstock.broker.cluster.metadata_cache import MetadataCache
from penstock.broker.configuration.loggers import Loggers
from penstock.broker.configuration.node_config import DEFAULTS, load
from penstock.broker.configuration.topic_configs import ConfigResolver
from penstock.broker.network.handlers import Handlers
from penstock.broker.network.request import RequestContext
from penstock.protocol.apis import ApiKey
from penstock.protocol.errors import KafkaError
from penstock.protocol.ids import BrokerEpoch, ControllerEpoch, NodeId, TopicId
from penstock.quorum.decisions.bootstrap import bootstrap_records
from penstock.quorum.decisions.configs import ALTER_CONFIGS
from penstock.quorum.decisions.context import ControllerConfig, DecisionContext
from penstock.quorum.decisions.controller_request import ControllerRequest
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import MetadataImage
from penstock.quorum.metadata.records import MetadataRecord, RegisterBrokerRecord, TopicRecord
from penstock.quorum.permissions.requester import Requester

PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:29193",
    "listeners": "PLAINTEXT://127.0.0.1:29192,CONTROLLER://127.0.0.1:29193",
    "inter.broker.listener.name": "PLAINTEXT",
    "advertised.listeners": "PLAINTEXT://127.0.0.1:29192",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "log.dirs": "/tmp/cfganchor/data",
    "num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.retention.hours": "24",
    "log.segment.bytes": "104857600",
}


def captured(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(__file__).with_name(name).read_text().splitlines()]


STEPS = captured("kafka_config_answers.jsonl")
CONTROLLER_STEPS = captured("kafka_controller_logger_answers.jsonl")
RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")
CONTEXT = RequestContext(listener_name="PLAINTEXT", peer_host="127.0.0.1", client_id="test")


class OneNode:
    """The config APIs of a broker whose controller commits at once."""

    root_level = logging.WARNING

    def __init__(self, properties: dict[str, str]) -> None:
        config = load(properties)
        self.resolver = ConfigResolver(config)
        self.metadata = MetadataCache()
        self.config = ControllerConfig(node_id=config.node_id, properties=config.properties)
        self.handlers = Handlers()
        self.register(Loggers(kafka_loggers(self.root_level)))
        self.commit(
            *bootstrap_records("AAAAAAAAAAAAAAAAAAAAAQ", min_insync_replicas=1),
            RegisterBrokerRecord(
                broker_id=NodeId(1), incarnation_id=UUID(int=1), broker_epoch=BrokerEpoch(1), is_fenced=False
            ),
            TopicRecord(name="t1", topic_id=TopicId(UUID(int=2))),
        )

    def register(self, loggers: Loggers) -> None:
        describe_configs.register(self.handlers, self.metadata, self.resolver, loggers)
        alter_configs.register(self.handlers, self.metadata, self.resolver, self, loggers, check_tls=lambda _tls: None)

    def commit(self, *records: MetadataRecord) -> None:
        base = self.metadata.image
        delta = MetadataDelta(base)
        for record in records:
            delta.replay(record)
        image: MetadataImage = delta.apply(offset=base.offset + 1, epoch=ControllerEpoch(1), timestamp_ms=0)
        self.resolver.publish(delta, image)
        self.metadata.publish(delta, image)

    def answer(self, api_key: ApiKey, request: object) -> Any:
        handler = self.handlers.by_message[api_key]
        try:
            response = handler.handle(request, CONTEXT)
            return asyncio.run(response) if asyncio.iscoroutine(response) else response
        except KafkaError as error:
            return handler.answer_error(request, error)

    def _context(self) -> DecisionContext:
        return DecisionContext(next_offset=0, random=Random(1), config=self.config, has_live_session=lambda _: True)

    async def submit(
        self,
        request: ControllerRequest[RequestT, ResponseT],
        message: RequestT,
        *,
        requester: Requester | None = None,  # noqa: ARG002
    ) -> ResponseT:
        result = request.decision(self.metadata.image, message, self._context())
        self.commit(*result.records)
        return result.response


class OneController(OneNode):
    """The config APIs of the listener of a controller, which commits at once."""

    root_level = logging.INFO

    def register(self, loggers: Loggers) -> None:
        describe_configs.register(self.handlers, self.metadata, self.resolver, loggers, is_controller=True)
        alter_configs.register_for_controllers(self.handlers, self.resolver, self, loggers)

        async def legacy_alter(message: legacy.AlterConfigsRequest, _context: RequestContext) -> LegacyResponse:
            return await self.submit(ALTER_CONFIGS, message)

        self.handlers.add_message(ApiKey.ALTER_CONFIGS, legacy_alter, answer_error=config_results.legacy_error)


def kafka_loggers(root_level: int) -> logging.Manager:
    """Two loggers that the broker had whose answers were captured."""
    manager = logging.Manager(logging.RootLogger(root_level))
    manager.getLogger("kafka.server.KafkaApis")
    return manager


def answers_of(node: OneNode, step: dict[str, Any]) -> object:
    options = step.get("options", {})
    match step["call"]:
        case "describe":
            request: object = DescribeConfigsRequest(
                resources=tuple(
                    DescribeConfigsResource(
                        resource_type=i8(kind),
                        resource_name=name,
                        configuration_keys=None if keys is None else tuple(keys),
                    )
                    for kind, name, keys in step["resources"]
                ),
                include_synonyms=options.get("synonyms", True),
                include_documentation=options.get("docs", False),
            )
            response = node.answer(ApiKey.DESCRIBE_CONFIGS, request)
            return [
                [
                    result.error_code.value,
                    result.error_message,
                    result.resource_type,
                    result.resource_name,
                    [config_row(config, has_documentation=options.get("docs", False)) for config in result.configs],
                ]
                for result in response.results
            ]
        case "incremental":
            request = incremental.IncrementalAlterConfigsRequest(
                resources=tuple(
                    incremental.AlterConfigsResource(
                        resource_type=i8(kind),
                        resource_name=name,
                        configs=tuple(
                            incremental.AlterableConfig(name=key, config_operation=i8(operation), value=value)
                            for key, operation, value in configs
                        ),
                    )
                    for kind, name, configs in step["resources"]
                ),
                validate_only=options.get("validate", False),
            )
            response = node.answer(ApiKey.INCREMENTAL_ALTER_CONFIGS, request)
        case "alter":
            request = legacy.AlterConfigsRequest(
                resources=tuple(
                    legacy.AlterConfigsResource(
                        resource_type=i8(kind),
                        resource_name=name,
                        configs=tuple(legacy.AlterableConfig(name=key, value=value) for key, value in configs),
                    )
                    for kind, name, configs in step["resources"]
                ),
                validate_only=options.get("validate", False),
            )
            response = node.answer(ApiKey.ALTER_CONFIGS, request)
        case _:
            request = ListConfigResourcesRequest(resource_types=tuple(map(i8, step["resources"])))
            response = node.answer(ApiKey.LIST_CONFIG_RESOURCES, request)
            resources = sorted([one.resource_type, one.resource_name] for one in response.config_resources)
            return [response.error_code.value, resources]
    return [
        [one.error_code.value, one.error_message, one.resource_type, one.resource_name] for one in response.responses
    ]


def config_row(config: Any, *, has_documentation: bool) -> list[object]:
    flags = ("r" if config.read_only else "") + ("s" if config.is_sensitive else "")
    synonyms = [[synonym.name, synonym.value, synonym.source] for synonym in config.synonyms]
    row = [config.name, config.value, config.config_source, config.config_type, flags, synonyms]
    if has_documentation:
        text = config.documentation
        row.append(None if text is None else hashlib.sha256(text.encode()).hexdigest()[:12])
    return row


def test_answers_are_those_of_apache_kafka() -> None:
    check_answers(OneNode(PROPERTIES), STEPS)


def test_a_controller_answers_for_its_loggers_as_that_of_apache_kafka() -> None:
    check_answers(OneController(PROPERTIES), CONTROLLER_STEPS)


def check_answers(node: OneNode, steps: list[dict[str, Any]]) -> None:
    wrong = []
    for number, step in enumerate(steps, 1):
        difference = _difference(step["answers"], answers_of(node, step))
        if bool(difference) != ("differs" in step):
            wrong.append(f"line {number}: {step['call']} {step['resources']}{difference or ' does not differ'}")
    assert not wrong, "\n".join(wrong)


def _difference(expected: object, answered: object) -> str:
    if isinstance(expected, list) and isinstance(answered, list):
        # What has a default of our own differs at least in that.
        theirs = [one for one in expected if not _has_own_default(one)]
        ours = [one for one in answered if not _has_own_default(one)]
        if len(theirs) == len(ours):
            return "".join(_difference(*pair) for pair in zip(theirs, ours, strict=True))
    return "" if expected == answered else f"\n    Kafka {expected!r}\n    here  {answered!r}"


def _has_own_default(row: object) -> bool:
    return isinstance(row, list) and bool(row) and isinstance(row[0], str) and row[0] in DEFAULTS


@pytest.mark.thorough
def test_a_request_cannot_name_the_same_resources_again_and_again() -> None:
    node = OneNode({"node.id": "1"})
    names = [(4, "1", None), (4, "01", []), (2, "t1", None), (2, "t1", ["retention.ms"])]
    rows: Any = answers_of(node, {"call": "describe", "resources": names * 25})
    assert [code for code, *_ in rows] == [0] * 100
    rows = answers_of(node, {"call": "describe", "resources": names * 26})
    assert {code for code, *_ in rows} == {42}
