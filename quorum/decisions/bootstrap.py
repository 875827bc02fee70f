"""The first records of a new cluster."""

from ..metadata.features import FEATURES
from ..metadata.image import ConfigResourceType
from ..metadata.records import ClusterRecord, ConfigRecord, FeatureLevelRecord, MetadataRecord
from ..metadata.security_records import UserScramCredentialRecord


def bootstrap_records(
    cluster_id: str, *, min_insync_replicas: int, credentials: tuple[UserScramCredentialRecord, ...] = ()
) -> tuple[MetadataRecord, ...]:
    """Return what the first controller of a cluster writes before anything else.

    Eligible leader replicas need one `min.insync.replicas` for the whole cluster, so it is written down (KIP-966).
    `credentials` are of clients that authenticate from the first connection on (KIP-900).
    """
    return (
        *(
            FeatureLevelRecord(name=name, feature_level=feature.initial_level)
            for name, feature in FEATURES.items()
            if feature.initial_level
        ),
        ClusterRecord(cluster_id=cluster_id),
        ConfigRecord(
            resource_type=ConfigResourceType.BROKER,
            resource_name="",
            name="min.insync.replicas",
            value=str(min_insync_replicas),
        ),
        *credentials,
    )
