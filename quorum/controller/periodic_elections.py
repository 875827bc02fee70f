"""The active controller's own elections, at their intervals (`decisions/periodic_elections.py`)."""

import asyncio
import logging

from ...protocol.errors import KafkaError
from ..decisions.context import Decision
from ..decisions.periodic_elections import balance_leaders, elect_where_unclean
from .controller import Controller

logger = logging.getLogger(__name__)


class PeriodicElections:
    """Runs beside a controller, and does nothing while that is not the active one.

    - `balance_interval_ms` (`leader.imbalance.check.interval.seconds`): how often preferred replicas get their
      leaderships back; None is never (`auto.leader.rebalance.enable`).
    - `unclean_interval_ms` (`unclean.leader.election.interval.ms`): how often partitions without a leader are looked at
      whose topic may lose records rather than wait.
    """

    def __init__(self, controller: Controller, *, balance_interval_ms: int | None, unclean_interval_ms: int) -> None:
        self._controller = controller
        self._balance_interval_ms = balance_interval_ms
        self._unclean_interval_ms = unclean_interval_ms

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._repeat(elect_where_unclean, self._unclean_interval_ms))
            if self._balance_interval_ms is not None:
                group.create_task(self._repeat(balance_leaders, self._balance_interval_ms))

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
                logger.debug("Resigned: another controller elects leaders")
