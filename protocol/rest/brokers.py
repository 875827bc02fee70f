"""Brokers."""

from typing import Literal

from msgspec import Struct

from .resources import CollectionMetadata, Relationship, ResourceMetadata


class Broker(Struct, kw_only=True):
    """Confluent's `BrokerData`, and whether the broker is fenced: a fenced one is registered, and serves nothing."""

    kind: Literal["KafkaBroker"] = "KafkaBroker"
    metadata: ResourceMetadata
    cluster_id: str
    broker_id: int
    host: str | None
    port: int | None
    rack: str | None
    is_fenced: bool
    configs: Relationship
    partition_replicas: Relationship


class BrokerList(Struct, kw_only=True):
    """Confluent's `BrokerDataList`."""

    kind: Literal["KafkaBrokerList"] = "KafkaBrokerList"
    metadata: CollectionMetadata
    data: list[Broker]
