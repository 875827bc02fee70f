"""A voter tells the active controller of itself: what it supports, and where clients reach it (KIP-919).

Kafka: `ControllerRegistrationManager`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from kio.schema.controller_registration.v0.request import ControllerRegistrationRequest, Feature, Listener
from kio.static.primitive import i32

from ...protocol.errors import KafkaError
from ...protocol.ids import NodeId
from ...quorum.decisions.controllers import CONTROLLER_REGISTRATION
from ..cluster.controller_channel import ControllerChannel
from ..configuration.listener_config import ListenerConfig
from .registration_fields import registered_features, registered_listeners

logger = logging.getLogger(__name__)

RETRY_S: Final = 1.0
"""After a refusal; while there is no controller, the channel itself asks on."""


async def register_controller(
    channel: ControllerChannel, *, node_id: NodeId, incarnation_id: UUID, listeners: Sequence[ListenerConfig]
) -> None:
    """Returns once the registration is committed. The metadata keeps it, until another process has the id."""
    request = ControllerRegistrationRequest(
        controller_id=i32(node_id),
        incarnation_id=incarnation_id,
        zk_migration_ready=False,
        listeners=registered_listeners(Listener, listeners),
        features=registered_features(Feature),
    )
    said = ""
    while True:
        try:
            await channel.submit(CONTROLLER_REGISTRATION, request)
        except KafkaError as error:
            if str(error) != said:
                said = str(error)
                logger.warning("Unable to register the controller, retrying: node_id=%d reason=%s", node_id, said)
            await asyncio.sleep(RETRY_S)
        else:
            return
