"""`/v3/…/brokers/{broker_id}/configs`, which the broker itself answers, and `brokers/-/configs`, of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult

from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.rest.configs import AlterConfigs, BrokerConfig, BrokerConfigList, UpdateConfig
from ....protocol.rest.resources import PageQuery
from ....quorum.metadata.image import BrokerRegistration
from ..operation import Call, Content, Operation
from . import config_resource, links, lookups, pages
from .answers import gather, unavailable

_PATH: Final = "/v3/clusters/{cluster_id}/brokers/{broker_id}/configs"
_TAG: Final = "Broker config"


async def _list(call: Call) -> Content:
    cluster_id = links.cluster_id(call)
    broker_id = lookups.broker(call, call.node.image).id
    last = pages.after(call, str)
    items = (
        (config.name, _describe(call, cluster_id, broker_id, config))
        for config in await config_resource.of_broker(broker_id).describe(call)
        if last is None or config.name > last
    )
    return await pages.page(call, "KafkaBrokerConfigList", items, cluster_id, "brokers", broker_id, "configs")


async def _list_all(call: Call) -> Content:
    cluster_id = links.cluster_id(call)
    last = pages.after(call, tuple[int, str])
    image = call.node.image
    brokers = [broker for key, broker in sorted(image.brokers.items()) if last is None or key >= last[0]]
    answers = await gather([partial(_configs_of, call, broker) for broker in brokers])
    missing = [
        unavailable(f"broker {broker.id}", answer)
        for broker, answer in zip(brokers, answers, strict=True)
        if isinstance(answer, KafkaError)
    ]
    items = (
        ((broker.id, config.name), _describe(call, cluster_id, broker.id, config))
        for broker, answer in zip(brokers, answers, strict=True)
        if not isinstance(answer, KafkaError)
        for config in answer
        if last is None or (broker.id, config.name) > last
    )
    return await pages.page(
        call, "KafkaBrokerConfigList", items, cluster_id, "brokers", "-", "configs", unavailable=missing
    )


async def _configs_of(call: Call, broker: BrokerRegistration) -> Sequence[DescribeConfigsResourceResult]:
    if broker.is_fenced:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker {broker.id} is fenced.")
    return await config_resource.of_broker(broker.id).describe(call)


async def _get(call: Call) -> BrokerConfig:
    cluster_id = links.cluster_id(call)
    broker_id = lookups.broker(call, call.node.image).id
    config = await config_resource.of_broker(broker_id).describe_one(call, call.path["name"])
    return _describe(call, cluster_id, broker_id, config)


async def _update(call: Call) -> None:
    links.cluster_id(call)
    broker_id = lookups.broker(call, call.node.image).id
    await config_resource.of_broker(broker_id).set(call, call.path["name"], call.body.value)


async def _reset(call: Call) -> None:
    links.cluster_id(call)
    broker_id = lookups.broker(call, call.node.image).id
    await config_resource.of_broker(broker_id).reset(call, call.path["name"])


async def _alter(call: Call) -> None:
    links.cluster_id(call)
    broker_id = lookups.broker(call, call.node.image).id
    await config_resource.of_broker(broker_id).alter(call, call.body)


def _describe(call: Call, cluster_id: str, broker_id: int, config: DescribeConfigsResourceResult) -> BrokerConfig:
    own = ("brokers", broker_id, "configs", config.name)
    return BrokerConfig(**config_resource.common_fields(call, cluster_id, config, *own), broker_id=broker_id)


OPERATIONS: Final = (
    Operation(
        name="listBrokerConfigsOfAll",
        method="GET",
        path="/v3/clusters/{cluster_id}/brokers/-/configs",
        tag=_TAG,
        summary="The configs of all brokers",
        description="`metadata.unavailable` names the brokers that did not answer.",
        run=_list_all,
        query=PageQuery,
        answer=BrokerConfigList,
    ),
    Operation(
        name="listBrokerConfigs",
        method="GET",
        path=_PATH,
        tag=_TAG,
        summary="The configs of a broker",
        run=_list,
        query=PageQuery,
        answer=BrokerConfigList,
    ),
    Operation(
        name="alterBrokerConfigs",
        method="POST",
        path=_PATH + ":alter",
        tag=_TAG,
        summary="Change some configs of a broker",
        run=_alter,
        body=AlterConfigs,
        status=204,
    ),
    Operation(
        name="getBrokerConfig",
        method="GET",
        path=_PATH + "/{name}",
        tag=_TAG,
        summary="One config of a broker",
        run=_get,
        answer=BrokerConfig,
    ),
    Operation(
        name="updateBrokerConfig",
        method="PUT",
        path=_PATH + "/{name}",
        tag=_TAG,
        summary="Set a config of a broker",
        run=_update,
        body=UpdateConfig,
        status=204,
    ),
    Operation(
        name="deleteBrokerConfig",
        method="DELETE",
        path=_PATH + "/{name}",
        tag=_TAG,
        summary="Reset a config of a broker to its default",
        run=_reset,
        status=204,
    ),
)
