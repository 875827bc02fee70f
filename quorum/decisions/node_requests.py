"""What only nodes of the cluster may ask of a controller: which decision answers each API, and who may send it."""

from typing import Final, Protocol

from ...protocol.apis import ApiKey
from .brokers import register_broker
from .controller_request import ControllerRequest
from .controllers import register_controller
from .directories import assign_replicas_to_dirs
from .heartbeats import heartbeat
from .isr_changes import alter_partition
from .producer_ids import allocate_producer_ids


class _OfBroker(Protocol):
    @property
    def broker_id(self) -> int: ...


def _broker(request: _OfBroker) -> int:
    return request.broker_id


BROKER_REGISTRATION: Final = ControllerRequest(ApiKey.BROKER_REGISTRATION, register_broker, _broker)
BROKER_HEARTBEAT: Final = ControllerRequest(ApiKey.BROKER_HEARTBEAT, heartbeat, _broker)
ALLOCATE_PRODUCER_IDS: Final = ControllerRequest(ApiKey.ALLOCATE_PRODUCER_IDS, allocate_producer_ids, _broker)
ALTER_PARTITION: Final = ControllerRequest(ApiKey.ALTER_PARTITION, alter_partition, _broker)
ASSIGN_REPLICAS_TO_DIRS: Final = ControllerRequest(ApiKey.ASSIGN_REPLICAS_TO_DIRS, assign_replicas_to_dirs, _broker)
CONTROLLER_REGISTRATION: Final = ControllerRequest(
    ApiKey.CONTROLLER_REGISTRATION, register_controller, lambda request: request.controller_id
)
