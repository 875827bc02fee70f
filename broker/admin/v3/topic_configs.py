"""`/v3/…/topics/{topic_name}/configs`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from ....protocol.acls import AclOperation, ResourceType
from ....protocol.rest.configs import (
    AlterConfigs,
    DefaultTopicConfig,
    DefaultTopicConfigList,
    TopicConfig,
    TopicConfigList,
    UpdateConfig,
)
from ....protocol.rest.resources import PageQuery
from ....quorum.metadata.image import TopicImage
from ..operation import Call, Content, Operation
from . import config_resource, links, lookups, pages

_PATH: Final = "/v3/clusters/{cluster_id}/topics/{topic_name}/configs"
_TAG: Final = "Topic config"


async def _list(call: Call) -> Content:
    cluster_id = links.cluster_id(call)
    topic = lookups.topic(call, call.node.image)
    last = pages.after(call, tuple[str, str])
    return await pages.page(
        call,
        "KafkaTopicConfigList",
        _configs(call, cluster_id, topic, last),
        cluster_id,
        "topics",
        topic.name,
        "configs",
    )


async def _list_all(call: Call) -> Content:
    cluster_id = links.cluster_id(call)
    last = pages.after(call, tuple[str, str])
    image = call.node.image

    async def items() -> AsyncIterator[tuple[object, object]]:
        begun = None if last is None else image.topics.by_name.get(last[0])
        if begun is not None and _is_visible(call, begun):
            async for item in _configs(call, cluster_id, begun, last):
                yield item
        for topic in lookups.topics_after(image, None if last is None else last[0]):
            # One that was deleted meanwhile has none.
            if topic.name in call.node.image.topics.by_name and _is_visible(call, topic):
                async for item in _configs(call, cluster_id, topic, None):
                    yield item

    return await pages.page(call, "KafkaTopicConfigList", items(), cluster_id, "topics", "-", "configs")


def _is_visible(call: Call, topic: TopicImage) -> bool:
    return call.may(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name)


async def _configs(
    call: Call, cluster_id: str, topic: TopicImage, last: tuple[str, str] | None
) -> AsyncIterator[tuple[object, object]]:
    for config in await config_resource.of_topic(topic.name).describe(call):
        key = (topic.name, config.name)
        if last is None or key > last:
            own = ("topics", topic.name, "configs", config.name)
            fields = config_resource.common_fields(call, cluster_id, config, *own)
            yield key, TopicConfig(**fields, topic_name=topic.name)


async def _list_defaults(call: Call) -> Content:
    cluster_id = links.cluster_id(call)
    topic = lookups.topic(call, call.node.image)
    last = pages.after(call, str)
    path = ("topics", topic.name, "default-configs")
    described = await config_resource.of_topic(topic.name).describe(call)
    # Asked of the controller, so only where the answers of brokers do not say it.
    is_needed = any(config_resource.is_own_alone(config) for config in described)
    defaults = await config_resource.defaults_of_new_topic(call, topic.topic_id) if is_needed else {}
    items = []
    for config in described:
        if last is None or config.name > last:
            fields = config_resource.common_fields(call, cluster_id, config, *path, config.name)
            default = DefaultTopicConfig(**config_resource.without_own(fields, defaults), topic_name=topic.name)
            items.append((config.name, default))
    return await pages.page(call, "KafkaTopicDefaultConfigList", items, cluster_id, *path)


async def _get(call: Call) -> TopicConfig:
    cluster_id = links.cluster_id(call)
    topic = lookups.topic(call, call.node.image)
    config = await config_resource.of_topic(topic.name).describe_one(call, call.path["name"])
    own = ("topics", topic.name, "configs", config.name)
    return TopicConfig(**config_resource.common_fields(call, cluster_id, config, *own), topic_name=topic.name)


async def _update(call: Call) -> None:
    links.cluster_id(call)
    topic = lookups.topic(call, call.node.image)
    await config_resource.of_topic(topic.name).set(call, call.path["name"], call.body.value)


async def _reset(call: Call) -> None:
    links.cluster_id(call)
    topic = lookups.topic(call, call.node.image)
    await config_resource.of_topic(topic.name).reset(call, call.path["name"])


async def _alter(call: Call) -> None:
    links.cluster_id(call)
    topic = lookups.topic(call, call.node.image)
    await config_resource.of_topic(topic.name).alter(call, call.body)


OPERATIONS: Final = (
    Operation(
        name="listTopicConfigsOfAll",
        method="GET",
        path="/v3/clusters/{cluster_id}/topics/-/configs",
        tag=_TAG,
        summary="The configs of all topics",
        run=_list_all,
        query=PageQuery,
        answer=TopicConfigList,
    ),
    Operation(
        name="listTopicConfigs",
        method="GET",
        path=_PATH,
        tag=_TAG,
        summary="The configs of a topic",
        run=_list,
        query=PageQuery,
        answer=TopicConfigList,
    ),
    Operation(
        name="alterTopicConfigs",
        method="POST",
        path=_PATH + ":alter",
        tag=_TAG,
        summary="Change some configs of a topic",
        run=_alter,
        body=AlterConfigs,
        status=204,
    ),
    Operation(
        name="getTopicConfig",
        method="GET",
        path=_PATH + "/{name}",
        tag=_TAG,
        summary="One config of a topic",
        run=_get,
        answer=TopicConfig,
    ),
    Operation(
        name="updateTopicConfig",
        method="PUT",
        path=_PATH + "/{name}",
        tag=_TAG,
        summary="Set a config of a topic",
        run=_update,
        body=UpdateConfig,
        status=204,
    ),
    Operation(
        name="deleteTopicConfig",
        method="DELETE",
        path=_PATH + "/{name}",
        tag=_TAG,
        summary="Reset a config of a topic to its default",
        run=_reset,
        status=204,
    ),
    Operation(
        name="listDefaultTopicConfigs",
        method="GET",
        path="/v3/clusters/{cluster_id}/topics/{topic_name}/default-configs",
        tag=_TAG,
        summary="What the configs of a topic are without its own",
        run=_list_defaults,
        query=PageQuery,
        answer=DefaultTopicConfigList,
    ),
)
