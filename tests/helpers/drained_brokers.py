"""Draining brokers, for tests of the controller's decisions."""

from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.static.primitive import i8
from metadata_cluster import Cluster

from penstock.protocol.errors import ErrorCode
from penstock.quorum.configs.own_keys import BROKER_DRAINED, DRAINED
from penstock.quorum.decisions.configs import Operation, incremental_alter_configs
from penstock.quorum.metadata.image import ConfigResourceType


def drain_request(*broker_ids: int, is_drained: bool = True, value: str = DRAINED) -> IncrementalAlterConfigsRequest:
    """Return what sets `broker.drained`, or takes it away."""
    config = AlterableConfig(
        name=BROKER_DRAINED,
        config_operation=i8(Operation.SET if is_drained else Operation.DELETE),
        value=value if is_drained else None,
    )
    return IncrementalAlterConfigsRequest(
        resources=tuple(
            AlterConfigsResource(
                resource_type=i8(ConfigResourceType.BROKER), resource_name=str(broker_id), configs=(config,)
            )
            for broker_id in broker_ids
        ),
        validate_only=False,
    )


def drain(cluster: Cluster, *broker_ids: int, is_drained: bool = True, value: str = DRAINED) -> None:
    """Drain brokers, or end that, in one request. Asserts that none is refused."""
    response = cluster.submit(incremental_alter_configs, drain_request(*broker_ids, is_drained=is_drained, value=value))
    assert all(ErrorCode(int(result.error_code)) is ErrorCode.NONE for result in response.responses)
