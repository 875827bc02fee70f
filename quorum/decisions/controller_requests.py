"""The requests that a controller decides: which decision answers each API, and who may send it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from ...protocol.apis import ApiKey
from .acls import create_acls, delete_acls
from .brokers import register_broker, unregister_broker
from .client_quotas import alter_client_quotas
from .configs import alter_configs, incremental_alter_configs
from .context import Decision
from .controllers import register_controller
from .delegation_tokens import create_token, expire_token, renew_token
from .directories import assign_replicas_to_dirs
from .elections import elect_leaders
from .features import update_features
from .heartbeats import heartbeat
from .isr_changes import alter_partition
from .partitions import create_partitions
from .producer_ids import allocate_producer_ids
from .reassignments import alter_reassignments
from .scram_credentials import alter_user_scram_credentials
from .topics import create_topics, delete_topics

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


@dataclass(frozen=True, slots=True)
class ControllerRequest(Generic[RequestT, ResponseT]):
    """One API. `sender` returns the node id that a request speaks for; the request is refused unless the connection has
    proved that id. Without `sender` every client may send it. From `first_strict_version` on what exceeds a client's
    quota of changes is refused with a code of its own (KIP-599)."""

    api_key: ApiKey
    decision: Decision[RequestT, ResponseT]
    sender: Callable[[RequestT], int] | None = None
    first_strict_version: int = 0

    @property
    def is_for_brokers(self) -> bool:
        """Whether it is only for nodes of this cluster."""
        return self.sender is not None


class _OfBroker(Protocol):
    @property
    def broker_id(self) -> int: ...


def _broker(request: _OfBroker) -> int:
    return request.broker_id


CREATE_TOPICS: Final = ControllerRequest(ApiKey.CREATE_TOPICS, create_topics, first_strict_version=6)
DELETE_TOPICS: Final = ControllerRequest(ApiKey.DELETE_TOPICS, delete_topics, first_strict_version=5)
CREATE_PARTITIONS: Final = ControllerRequest(ApiKey.CREATE_PARTITIONS, create_partitions, first_strict_version=3)
ELECT_LEADERS: Final = ControllerRequest(ApiKey.ELECT_LEADERS, elect_leaders)
ALTER_PARTITION_REASSIGNMENTS: Final = ControllerRequest(ApiKey.ALTER_PARTITION_REASSIGNMENTS, alter_reassignments)
ALTER_CONFIGS: Final = ControllerRequest(ApiKey.ALTER_CONFIGS, alter_configs)
INCREMENTAL_ALTER_CONFIGS: Final = ControllerRequest(ApiKey.INCREMENTAL_ALTER_CONFIGS, incremental_alter_configs)
ALTER_CLIENT_QUOTAS: Final = ControllerRequest(ApiKey.ALTER_CLIENT_QUOTAS, alter_client_quotas)
UPDATE_FEATURES: Final = ControllerRequest(ApiKey.UPDATE_FEATURES, update_features)
UNREGISTER_BROKER: Final = ControllerRequest(ApiKey.UNREGISTER_BROKER, unregister_broker)
CREATE_ACLS: Final = ControllerRequest(ApiKey.CREATE_ACLS, create_acls)
DELETE_ACLS: Final = ControllerRequest(ApiKey.DELETE_ACLS, delete_acls)
ALTER_USER_SCRAM_CREDENTIALS: Final = ControllerRequest(
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS, alter_user_scram_credentials
)
CREATE_TOKEN: Final = ControllerRequest(ApiKey.CREATE_DELEGATION_TOKEN, create_token)
RENEW_TOKEN: Final = ControllerRequest(ApiKey.RENEW_DELEGATION_TOKEN, renew_token)
EXPIRE_TOKEN: Final = ControllerRequest(ApiKey.EXPIRE_DELEGATION_TOKEN, expire_token)
BROKER_REGISTRATION: Final = ControllerRequest(ApiKey.BROKER_REGISTRATION, register_broker, _broker)
BROKER_HEARTBEAT: Final = ControllerRequest(ApiKey.BROKER_HEARTBEAT, heartbeat, _broker)
ALLOCATE_PRODUCER_IDS: Final = ControllerRequest(ApiKey.ALLOCATE_PRODUCER_IDS, allocate_producer_ids, _broker)
ALTER_PARTITION: Final = ControllerRequest(ApiKey.ALTER_PARTITION, alter_partition, _broker)
ASSIGN_REPLICAS_TO_DIRS: Final = ControllerRequest(ApiKey.ASSIGN_REPLICAS_TO_DIRS, assign_replicas_to_dirs, _broker)
CONTROLLER_REGISTRATION: Final = ControllerRequest(
    ApiKey.CONTROLLER_REGISTRATION, register_controller, lambda request: request.controller_id
)
