"""Brokers, leaders and replicas as the clients of one listener see them: rules on an image, nothing else."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import NamedTuple

from ....protocol.errors import ErrorCode
from ....protocol.ids import NO_NODE, NodeId
from ....quorum.metadata.image import MetadataImage, PartitionRegistration
from ....quorum.metadata.records import NO_LEADER

# Bits are numbers of Kafka's AclOperation. There is no authorizer: everyone may do everything.
TOPIC_AUTHORIZED_OPERATIONS = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
"""Read, write, create, delete, alter, describe, describe configs, alter configs (KIP-430)."""
CLUSTER_AUTHORIZED_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
"""Create, alter, describe, cluster action, describe configs, alter configs, idempotent write."""
OPERATIONS_NOT_ASKED_FOR = -(2**31)


class BrokerAddress(NamedTuple):
    """Where clients of the listener reach a broker."""

    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool


class PartitionView(NamedTuple):
    error_code: ErrorCode
    leader_id: NodeId
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    offline_replicas: tuple[int, ...]


class ClusterView:
    """An image as it looks through one listener."""

    def __init__(
        self, image: MetadataImage, listener_name: str, own_id: NodeId = NO_NODE, departed: Container[int] = ()
    ) -> None:
        """`own_id` is that of the broker that answers, if it is one; `departed` are fenced and listed nevertheless."""
        self.image = image
        self._departed = departed
        self._own_id = own_id
        self._addresses = {address.id: address for address in _addresses(image, listener_name)}

    @property
    def brokers(self) -> tuple[BrokerAddress, ...]:
        """Those that clients can use, and those that departed."""
        return tuple(
            address for address in self._addresses.values() if not address.is_fenced or address.id in self._departed
        )

    @property
    def brokers_or_own(self) -> tuple[BrokerAddress, ...]:
        """`brokers`, and without any the one that answers: it is about to stop, or was fenced.

        librdkafka (2.10 to 2.16) whose metadata name a topic and no broker asks never again.
        """
        own = self._addresses.get(self._own_id)
        return self.brokers or (() if own is None else (own,))

    @property
    def all_brokers(self) -> tuple[BrokerAddress, ...]:
        """Fenced ones too."""
        return tuple(self._addresses.values())

    @property
    def controller_id(self) -> int:
        """A broker that takes controller requests and forwards them; -1 while no broker is unfenced.

        Any will do, so it is the one that the client has reached already: another may have just gone.
        """
        if self._is_alive(self._own_id):
            return self._own_id
        return min((broker.id for broker in self.brokers if not broker.is_fenced), default=-1)

    def partition(self, partition: PartitionRegistration, *, is_version_0: bool = False) -> PartitionView:
        """Leader, replicas and what is wrong with them.

        Metadata version 0 names only replicas that are alive, and reports an error when that leaves one out.
        """
        replicas, isr = partition.replicas, partition.isr
        if is_version_0:
            replicas = tuple(filter(self._is_alive, replicas))
            isr = tuple(filter(self._is_alive, isr))
        if not self._is_alive(partition.leader):
            leader_id = NO_LEADER
            is_registered = partition.leader in self.image.brokers
            error_code = ErrorCode.LISTENER_NOT_FOUND if is_registered else ErrorCode.LEADER_NOT_AVAILABLE
        else:
            leader_id = partition.leader
            is_complete = len(replicas) == len(partition.replicas) and len(isr) == len(partition.isr)
            error_code = ErrorCode.NONE if is_complete else ErrorCode.REPLICA_NOT_AVAILABLE
        offline = tuple(replica for replica in partition.replicas if self._is_offline(partition, replica))
        return PartitionView(error_code, leader_id, replicas, isr, offline)

    def _is_alive(self, broker_id: NodeId) -> bool:
        address = self._addresses.get(broker_id)
        return address is not None and not address.is_fenced

    def _is_offline(self, partition: PartitionRegistration, broker_id: NodeId) -> bool:
        if not self._is_alive(broker_id):
            return True
        return not self.image.brokers[broker_id].has_online_directory(partition.directory_of(broker_id))


def _addresses(image: MetadataImage, listener_name: str) -> Iterator[BrokerAddress]:
    for broker_id in sorted(image.brokers):
        broker = image.brokers[broker_id]
        endpoint = broker.endpoint(listener_name)
        if endpoint is not None:
            yield BrokerAddress(broker_id, endpoint.host, endpoint.port, broker.rack, broker.is_fenced)
