"""`/v3/…/broker-configs`: the dynamic configs that all brokers have unless they have their own."""

from __future__ import annotations

from typing import Final

from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult

from ....protocol.rest.configs import AlterConfigs, ClusterConfig, ClusterConfigList, UpdateConfig
from ....protocol.rest.resources import PageQuery
from ..operation import Call, Content, Operation
from . import links, pages
from .config_resource import OF_ALL_BROKERS, common_fields

_PATH: Final = "/v3/clusters/{cluster_id}/broker-configs"
_TAG: Final = "Cluster config"


async def _list(call: Call) -> Content:
    cluster_id = links.cluster_id(call)
    last = pages.after(call, str)
    items = (
        (config.name, _describe(call, cluster_id, config))
        for config in await OF_ALL_BROKERS.describe(call)
        if last is None or config.name > last
    )
    return await pages.page(call, "KafkaClusterConfigList", items, cluster_id, "broker-configs")


async def _get(call: Call) -> ClusterConfig:
    cluster_id = links.cluster_id(call)
    return _describe(call, cluster_id, await OF_ALL_BROKERS.describe_one(call, call.path["name"]))


async def _update(call: Call) -> None:
    links.cluster_id(call)
    await OF_ALL_BROKERS.set(call, call.path["name"], call.body.value)


async def _reset(call: Call) -> None:
    links.cluster_id(call)
    await OF_ALL_BROKERS.reset(call, call.path["name"])


async def _alter(call: Call) -> None:
    links.cluster_id(call)
    await OF_ALL_BROKERS.alter(call, call.body)


def _describe(call: Call, cluster_id: str, config: DescribeConfigsResourceResult) -> ClusterConfig:
    return ClusterConfig(**common_fields(call, cluster_id, config, "broker-configs", config.name))


OPERATIONS: Final = (
    Operation(
        name="listClusterConfigs",
        method="GET",
        path=_PATH,
        tag=_TAG,
        summary="The dynamic configs of all brokers together",
        run=_list,
        query=PageQuery,
        answer=ClusterConfigList,
    ),
    Operation(
        name="alterClusterConfigs",
        method="POST",
        path=_PATH + ":alter",
        tag=_TAG,
        summary="Change some configs of all brokers together",
        run=_alter,
        body=AlterConfigs,
        status=204,
    ),
    Operation(
        name="getClusterConfig",
        method="GET",
        path=_PATH + "/{name}",
        tag=_TAG,
        summary="One dynamic config of all brokers together",
        run=_get,
        answer=ClusterConfig,
    ),
    Operation(
        name="updateClusterConfig",
        method="PUT",
        path=_PATH + "/{name}",
        tag=_TAG,
        summary="Set a config of all brokers together",
        run=_update,
        body=UpdateConfig,
        status=204,
    ),
    Operation(
        name="deleteClusterConfig",
        method="DELETE",
        path=_PATH + "/{name}",
        tag=_TAG,
        summary="Reset a config of all brokers together",
        run=_reset,
        status=204,
    ),
)
