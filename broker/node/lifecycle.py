"""This node as a broker of the cluster, from registration to controlled shutdown. Kafka: `BrokerLifecycleManager`.

| state        | entered by                | what it does                                                           |
|--------------|---------------------------|------------------------------------------------------------------------|
| new          | construction              |                                                                        |
| registered   | `register`                | has a broker epoch; fenced, so that clients are not sent here          |
| active       | `unfence`                 | `keep_alive` sends heartbeats                                          |
| shut down    | `shut_down`               | leads nothing any more; the controller has fenced it                   |
| replaced     | another process registers | nothing: answers and metadata from then on are meant for that process  |

The controller may be in this process or elsewhere: its answers come by the same decisions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import IntEnum
from uuid import UUID

from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.broker_heartbeat.v2.response import BrokerHeartbeatResponse
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest, Feature, Listener
from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i64

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import NO_BROKER_EPOCH, BrokerEpoch, NodeId
from ...quorum.decisions.brokers import BROKER_REGISTRATION
from ...quorum.decisions.heartbeats import BROKER_HEARTBEAT
from ...quorum.metadata.delta import MetadataDelta
from ...quorum.metadata.image import MetadataImage
from ..cluster.controller_channel import ControllerChannel
from ..cluster.metadata_cache import MetadataCache
from ..configuration.listener_config import ListenerConfig
from .registration_fields import registered_features, registered_listeners

logger = logging.getLogger(__name__)

REGISTRATION_RETRY_MS = 100
"""Before the second attempt to register; twice as long before each further one, up to the interval of heartbeats."""
SHUTDOWN_TIMEOUT_MS = 3_000
"""The last nodes of a cluster that stops as a whole have no controller any more."""
SHUTDOWN_HEARTBEATS_MAX = 10
"""A controller that has no other replica to elect lets the broker stop at the second."""


class BrokerState(IntEnum):
    """Kafka's numbers (`BrokerState`)."""

    STARTING = 1
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6


class BrokerLifecycle:
    """Registers once, then keeps the session alive."""

    def __init__(
        self,
        controller: ControllerChannel,
        metadata: MetadataCache,
        *,
        node_id: NodeId,
        rack: str | None,
        incarnation_id: UUID,
        directories: Sequence[UUID],
        cordoned_directories: Callable[[], Sequence[UUID]],
        heartbeat_interval_ms: int,
        on_replaced: Callable[[str], None],
    ) -> None:
        """`cordoned_directories` take no new replica. Calls `on_replaced` once, with a sentence, when another process
        has registered as this broker.
        """
        self._controller = controller
        self._metadata = metadata
        self._node_id = node_id
        self._rack = rack
        self._incarnation_id = incarnation_id
        self._directories = tuple(directories)
        self._cordoned_directories = cordoned_directories
        self._offline_directories: set[UUID] = set()
        self._heartbeat_interval_ms = heartbeat_interval_ms
        self._on_replaced = on_replaced
        self._is_replaced = False
        self._controller_epoch = 0
        self._wake = asyncio.Event()
        self.broker_epoch = NO_BROKER_EPOCH
        self.state = BrokerState.STARTING

    async def register(
        self,
        advertised: Sequence[ListenerConfig],
        *,
        cluster_id: str,
        previous_broker_epoch: BrokerEpoch,
        timeout_ms: int,
    ) -> None:
        """Takes the place of this broker id, fenced; waits up to `timeout_ms` for the session of another process there
        to end.

        `previous_broker_epoch` is that of a clean stop, -1 after any other. Raises KafkaError when the controller
        refuses.
        """
        request = BrokerRegistrationRequest(
            broker_id=BrokerId(self._node_id),
            cluster_id=cluster_id,
            incarnation_id=self._incarnation_id,
            listeners=registered_listeners(Listener, advertised),
            features=registered_features(Feature),
            rack=self._rack,
            log_dirs=self._directories,
            previous_broker_epoch=i64(previous_broker_epoch),
        )
        response = await self._submit_registration(request, timeout_ms)
        self.broker_epoch = BrokerEpoch(response.broker_epoch)
        # The epoch is where the registration stands in the metadata: what is done from here on rests on nothing older.
        await self._metadata.wait_for(self.broker_epoch)
        self._check_replaced(self._metadata.image)

    async def _submit_registration(
        self, request: BrokerRegistrationRequest, timeout_ms: int
    ) -> BrokerRegistrationResponse:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_ms / 1000
        retry_ms = REGISTRATION_RETRY_MS
        is_told = False
        while True:
            try:
                # When no controller answers, the channel raises with the reason.
                return await self._controller.submit(BROKER_REGISTRATION, request)
            except KafkaError as error:
                if error.code is not ErrorCode.DUPLICATE_BROKER_REGISTRATION:
                    raise
                if loop.time() + retry_ms / 1000 > deadline_s:
                    raise KafkaError(
                        error.code,
                        f"another process is broker {self._node_id}, on other log directories, and was heard within "
                        f"its session (broker.session.timeout.ms) for {timeout_ms} ms "
                        "(initial.broker.registration.timeout.ms)",
                    ) from error
                if not is_told:
                    logger.info("Unable to register the broker, retrying: reason=%s", error)
                    is_told = True
            await asyncio.sleep(retry_ms / 1000)
            retry_ms = min(2 * retry_ms, self._heartbeat_interval_ms)

    def publish(self, _delta: MetadataDelta, image: MetadataImage) -> None:
        """Runs before the publishers that serve partitions."""
        if self.broker_epoch >= 0:
            self._check_replaced(image)
        if image.epoch != self._controller_epoch:
            # A new controller should have a connection to watch as soon as can be.
            self._controller_epoch = image.epoch
            self._wake.set()

    def _check_replaced(self, image: MetadataImage) -> None:
        registered = image.brokers.get(self._node_id)
        if registered is not None and registered.epoch > self.broker_epoch:
            self._become_replaced()

    def _become_replaced(self) -> None:
        if not self._is_replaced:
            self._is_replaced = True
            self._on_replaced(
                f"Another process has taken the place of this one as broker {self._node_id}, while this one was not "
                "heard."
            )

    async def unfence(self) -> None:
        """Asks to be let in, until it is."""
        while (await self._heartbeat()).is_fenced:
            await self._pause()
        self.state = BrokerState.RUNNING

    async def keep_alive(self) -> None:
        """Sends a heartbeat every `broker.heartbeat.interval.ms`, until cancelled."""
        while True:
            await self._pause()
            try:
                await self._heartbeat()
            except KafkaError as error:
                if error.code is ErrorCode.STALE_BROKER_EPOCH:
                    self._become_replaced()
                logger.warning(
                    "Broker sent a heartbeat request but received an error: broker_epoch=%d reason=%s",
                    self.broker_epoch,
                    error,
                )

    def report_failed_directory(self, directory: UUID) -> None:
        """Tells the controller with a heartbeat of its own that the replicas there cannot be served (KIP-858)."""
        self._offline_directories.add(directory)
        self._wake.set()

    def report_cordoned_directories(self) -> None:
        """Tells the controller with a heartbeat of its own that new replicas may go elsewhere, or come (KIP-1066)."""
        self._wake.set()

    async def shut_down(self) -> None:
        """Hands leaderships over and leaves; goes ahead without the controller's blessing when that cannot be had."""
        self.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
        try:
            async with asyncio.timeout(SHUTDOWN_TIMEOUT_MS / 1000):
                for _ in range(SHUTDOWN_HEARTBEATS_MAX):
                    if (await self._heartbeat(wants_shutdown=True)).should_shut_down:
                        return
        except TimeoutError:
            # Its session ends as if it had been killed.
            logger.warning("Controlled shutdown timed out: reason=no response from a controller")
        except KafkaError as error:
            logger.warning("Controlled shutdown failed: reason=%s", error)

    async def _pause(self) -> None:
        """Until the next heartbeat is due, or there is something to tell."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._heartbeat_interval_ms / 1000):
                await self._wake.wait()
        self._wake.clear()

    async def _heartbeat(self, *, wants_shutdown: bool = False) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            broker_id=BrokerId(self._node_id),
            broker_epoch=i64(self.broker_epoch),
            current_metadata_offset=i64(self._metadata.image.offset),
            want_fence=False,
            want_shut_down=wants_shutdown,
            offline_log_dirs=tuple(sorted(self._offline_directories)),
            cordoned_log_dirs=tuple(self._cordoned_directories()),
        )
        return await self._controller.submit(BROKER_HEARTBEAT, request)
