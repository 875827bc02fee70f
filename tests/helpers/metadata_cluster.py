"""A cluster's metadata, for tests of the controller's decisions."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar
from uuid import UUID

from penstock.protocol.ids import BrokerEpoch, ControllerEpoch, NodeId
from penstock.quorum.decisions.bootstrap import bootstrap_records
from penstock.quorum.decisions.context import ControllerConfig, ControllerResult, Decision, DecisionContext
from penstock.quorum.decisions.mutation_quota import MutationAllowance
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionRegistration
from penstock.quorum.metadata.records import Endpoint, MetadataRecord, RegisterBrokerRecord

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")
CLUSTER_ID = "kVg0FJXuTjOXMxXGnN9MPA"


class Cluster:
    """An image that decisions are made on, and that their records change."""

    def __init__(self) -> None:
        self.image: MetadataImage = EMPTY_IMAGE
        self.random = Random(7)
        self.config = ControllerConfig(node_id=NodeId(1))
        self.live_brokers: set[int] = set()
        self.records: Sequence[MetadataRecord] = ()
        self.delta = MetadataDelta(EMPTY_IMAGE)
        self.replay(bootstrap_records(CLUSTER_ID, min_insync_replicas=1))

    def replay(self, records: Sequence[MetadataRecord]) -> None:
        self.delta = MetadataDelta(self.image)
        for record in records:
            self.delta.replay(record)
        self.image = self.delta.apply(offset=self.image.offset + 1, epoch=ControllerEpoch(1), timestamp_ms=1_000)

    def decide(
        self,
        decision: Decision[RequestT, ResponseT],
        request: RequestT,
        *,
        change: str = "",
        allowance: MutationAllowance | None = None,
    ) -> ControllerResult[ResponseT]:
        """Return what the decision would do; `change` is the request's name, `allowance` what its client has left."""
        context = DecisionContext(
            next_offset=self.image.offset + 1,
            random=self.random,
            config=self.config,
            has_live_session=self.live_brokers.__contains__,
            change=change,
            allowance=allowance,
        )
        return decision(self.image, request, context)

    def submit(self, decision: Decision[RequestT, ResponseT], request: RequestT, *, change: str = "") -> ResponseT:
        """Decide and replay; `change` is the request's name."""
        result = self.decide(decision, request, change=change)
        self.records = result.records
        if result.records:
            self.replay(result.records)
        return result.response

    def add_brokers(self, *broker_ids: int, is_fenced: bool = False, rack: str | None = None) -> None:
        for broker_id in broker_ids:
            self.replay(
                [
                    RegisterBrokerRecord(
                        broker_id=NodeId(broker_id),
                        incarnation_id=UUID(int=1_000 + broker_id),
                        broker_epoch=BrokerEpoch(self.image.offset + 1),
                        endpoints=(Endpoint(name="PLAINTEXT", host="127.0.0.1", port=9_000 + broker_id),),
                        rack=rack,
                        is_fenced=is_fenced,
                        log_dirs=(directory_id(broker_id),),
                    )
                ]
            )

    def partition(self, topic: str, index: int = 0) -> PartitionRegistration:
        partition = self.image.topics.partition(topic, index)
        assert partition is not None
        return partition


def directory_id(broker_id: int) -> UUID:
    return UUID(int=100_000 + broker_id)
