"""The end of a drain that was to last until the broker has been restarted (decision 19)."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from ...protocol.errors import KafkaError
from ...protocol.ids import NodeId
from ...quorum.decisions.configs import INCREMENTAL_ALTER_CONFIGS
from ...quorum.planning.maintenance import drain_request, has_caught_up
from ..cluster.controller_channel import ControllerChannel
from ..cluster.metadata_cache import MetadataCache

logger = logging.getLogger(__name__)

LOOK_INTERVAL_S: Final = 0.5
CATCH_UP_MAX_S: Final = 300.0
"""A replica that is not in sync by then has another problem; the others are led here again."""


async def end_drain(metadata: MetadataCache, controller: ControllerChannel, node_id: NodeId) -> None:
    """Return once the drain has ended: when all replicas here are in sync, or after CATCH_UP_MAX_S.

    For a broker that has just been unfenced: a drain that begins later is for the next restart.
    """
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + CATCH_UP_MAX_S
    while metadata.image.configs.is_drained_until_restart(node_id):
        is_due = has_caught_up(metadata.image, node_id) or loop.time() >= deadline_s
        if is_due and await _delete(controller, node_id):
            return
        await asyncio.sleep(LOOK_INTERVAL_S)


async def _delete(controller: ControllerChannel, node_id: NodeId) -> bool:
    try:
        answer = await controller.submit(INCREMENTAL_ALTER_CONFIGS, drain_request(node_id, None))
    except KafkaError as error:
        logger.info("The drain until a restart has not ended yet: node_id=%d reason=%s", node_id, error)
        return False
    (response,) = answer.responses
    if response.error_code:
        logger.warning("The drain until a restart has not ended: node_id=%d reason=%s", node_id, response.error_message)
        return False
    logger.info("The drain until a restart has ended: node_id=%d", node_id)
    return True
