"""What the active controller decides of itself, at intervals: elections, the end of tokens."""

import asyncio
import logging
from collections.abc import Mapping

from ...protocol.errors import KafkaError
from ..decisions.context import Decision
from .controller import Controller

logger = logging.getLogger(__name__)


class PeriodicDecisions:
    """Runs beside a controller, and does nothing while that is not the active one."""

    def __init__(self, controller: Controller, intervals_ms: Mapping[Decision[None, bool], int]) -> None:
        """Each decision answers whether there may be more to decide; `intervals_ms` says how often it is made."""
        self._controller = controller
        self._intervals_ms = intervals_ms

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for decision, interval_ms in self._intervals_ms.items():
                group.create_task(self._repeat(decision, interval_ms))

    async def _repeat(self, decision: Decision[None, bool], interval_ms: int) -> None:
        while True:
            await asyncio.sleep(interval_ms / 1000)
            if not self._controller.is_active:
                continue
            try:
                while await self._controller.submit(decision, None):
                    pass
            except KafkaError:
                # Another controller is the active one now, and does it in its turn.
                logger.debug("Resigned: another controller decides")
