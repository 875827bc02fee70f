"""The first records of a new cluster."""

from collections.abc import Mapping

from ..image import ConfigResourceType
from ..records import ClusterRecord, ConfigRecord, FeatureLevelRecord, MetadataRecord

# Feature levels of a fresh cluster of Apache Kafka 4.3 as far as they are built here. 30 is its metadata.version
# 4.3-IV0.
FEATURE_LEVELS: Mapping[str, int] = {
    "metadata.version": 30,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "transaction.version": 2,
}


def bootstrap_records(cluster_id: str, *, min_insync_replicas: int) -> tuple[MetadataRecord, ...]:
    """Return what the first controller of a cluster writes before anything else.

    Eligible leader replicas need one `min.insync.replicas` for the whole cluster, so it is written down (KIP-966).
    """
    return (
        *(FeatureLevelRecord(name=name, feature_level=level) for name, level in FEATURE_LEVELS.items()),
        ClusterRecord(cluster_id=cluster_id),
        ConfigRecord(
            resource_type=ConfigResourceType.BROKER,
            resource_name="",
            name="min.insync.replicas",
            value=str(min_insync_replicas),
        ),
    )
