"""Every API that a controller serves on its own listener, but for those that prove who asks.

What nodes ask is there from the start. The rest is loaded when it is asked for, or soon after the node has started.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ....protocol.apis import ApiKey
from ....protocol.own_apis import OwnApiKey
from ...apis import api_versions, unimplemented
from ...network.handlers import Handlers
from ..later_handlers import add_modules
from . import node_requests
from .dependencies import ControllerHandlerDependencies

LATER: Final[Mapping[str, tuple[ApiKey | OwnApiKey, ...]]] = {
    "cluster": (
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_QUORUM,
        OwnApiKey.OPERATE_QUORUM,
    ),
    "configs": (
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.DESCRIBE_CONFIGS,
    ),
    "reassignments": (
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ),
    "security": (
        ApiKey.DESCRIBE_ACLS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    ),
    "topics": (
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
    ),
}
"""By the module here that has them."""


def register(handlers: Handlers, parts: ControllerHandlerDependencies) -> None:
    """Called last: what no handler serves then is refused."""
    api_versions.register(handlers, parts.metadata, is_controller=True)
    node_requests.register(handlers, parts)
    add_modules(handlers, __package__, LATER, parts)
    unimplemented.register(handlers, is_controller=True)
