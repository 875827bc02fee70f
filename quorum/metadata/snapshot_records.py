"""An image as records, and back: what a snapshot holds."""

from collections.abc import Iterable, Iterator
from itertools import islice

from ...protocol.ids import NO_BROKER_EPOCH, NO_NODE, ControllerEpoch
from . import records, security_records
from .delta import MetadataDelta
from .image import EMPTY_IMAGE, MetadataImage
from .record_codec import decode_entry, encode_entry, encode_record
from .records import MetadataRecord

# A chunk is made in one go on the loop, which allows 0.2 ms: a record takes 8 µs.
RECORDS_PER_CHUNK = 16


def image_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Yield the records that make this image from nothing, one at a time.

    Features come first: they say how to read the rest.
    """
    for name, level in image.features.items():
        yield records.FeatureLevelRecord(name=name, feature_level=level)
    if image.cluster_id is not None:
        yield records.ClusterRecord(cluster_id=image.cluster_id)
    for broker in image.brokers.values():
        yield records.RegisterBrokerRecord(
            broker_id=broker.id,
            incarnation_id=broker.incarnation_id,
            broker_epoch=broker.epoch,
            endpoints=broker.endpoints,
            features=broker.features,
            rack=broker.rack,
            is_fenced=broker.is_fenced,
            in_controlled_shutdown=broker.in_controlled_shutdown,
            log_dirs=broker.directories,
            cordoned_log_dirs=broker.cordoned_directories,
        )
    for controller in image.controllers.values():
        yield records.RegisterControllerRecord(
            controller_id=controller.id,
            incarnation_id=controller.incarnation_id,
            endpoints=controller.endpoints,
            features=controller.features,
        )
    for topic in image.topics.by_id.values():
        yield records.TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for index, partition in enumerate(topic.partitions):
            yield records.PartitionRecord(
                topic_id=topic.topic_id,
                partition_id=index,
                replicas=partition.replicas,
                isr=partition.isr,
                leader=partition.leader,
                leader_epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch,
                directories=partition.directories,
                removing_replicas=partition.removing_replicas,
                adding_replicas=partition.adding_replicas,
                leader_recovery_state=partition.leader_recovery_state,
                elr=partition.elr,
                last_known_elr=partition.last_known_elr,
            )
    for resource, values in image.configs.by_resource.items():
        for name, value in values.items():
            yield records.ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
    if image.next_producer_id:
        yield records.ProducerIdsRecord(
            broker_id=NO_NODE, broker_epoch=NO_BROKER_EPOCH, next_producer_id=image.next_producer_id
        )
    yield from _security_records(image)


def _security_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    for entity, values in image.client_quotas.items():
        parts = tuple(security_records.ClientQuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity)
        for key, value in values.items():
            yield security_records.ClientQuotaRecord(entity=parts, key=key, value=value)
    for acl_id, acl in image.acls.by_id.items():
        yield security_records.AccessControlEntryRecord(id=acl_id, **acl._asdict())
    for user, credential in image.scram_credentials.items():
        yield security_records.UserScramCredentialRecord(
            name=user.name,
            mechanism=user.mechanism,
            salt=credential.salt,
            stored_key=credential.stored_key,
            server_key=credential.server_key,
            iterations=credential.iterations,
        )
    for token in image.delegation_tokens.values():
        yield security_records.DelegationTokenRecord(
            token_id=token.token_id,
            owner=token.owner,
            requester=token.requester,
            issue_timestamp=token.issue_timestamp_ms,
            max_timestamp=token.max_timestamp_ms,
            expiration_timestamp=token.expiration_timestamp_ms,
            renewers=token.renewers,
        )


def image_chunks(image: MetadataImage) -> Iterator[bytes]:
    """Yield the image as encoded chunks, at least one; making one is short enough to be done on the loop."""
    remaining = image_records(image)
    while True:
        chunk = [encode_record(record) for record in islice(remaining, RECORDS_PER_CHUNK)]
        yield encode_entry(image.timestamp_ms, chunk)
        if len(chunk) < RECORDS_PER_CHUNK:
            return


def image_from_chunks(chunks: Iterable[bytes], *, offset: int, epoch: ControllerEpoch) -> MetadataImage:
    """Return the image of a snapshot whose last entry stands at `offset`.

    Raises CorruptData, UnknownRecord, ReplayError.
    """
    delta = MetadataDelta(EMPTY_IMAGE)
    timestamp_ms = 0
    for chunk in chunks:
        entry = decode_entry(chunk)
        timestamp_ms = entry.timestamp_ms
        for record in entry.records:
            delta.replay(record)
    return delta.apply(offset=offset, epoch=epoch, timestamp_ms=timestamp_ms)
