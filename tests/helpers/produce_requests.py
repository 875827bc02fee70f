"""A batch for one partition, as a produce request that names the topic by its id."""

from datetime import timedelta
from uuid import UUID

from kio.schema.produce.v13.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.static.primitive import Records, i16, i32, i32Timedelta

ALL = -1


def produce_request(
    topic_id: UUID | None, partition: int, batch: bytes, *, acks: int = ALL, timeout_ms: int = 60_000
) -> ProduceRequest:
    data = PartitionProduceData(index=i32(partition), records=Records(batch))
    return ProduceRequest(
        transactional_id=None,
        acks=i16(acks),
        timeout=i32Timedelta.parse(timedelta(milliseconds=timeout_ms)),
        topic_data=(TopicProduceData(topic_id=topic_id, partition_data=(data,)),),
    )
