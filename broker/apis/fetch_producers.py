"""What followers ask of their leader on behalf of producers (`broker/replication/leader_producers.py`)."""

from __future__ import annotations

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.own_apis import OwnApiKey, encode_own_response
from ...storage.producer_entry import ProducerEntry
from ..network.handlers import Handlers
from ..network.request import Request
from ..partitions.partition_manager import PartitionManager
from ..replication.leader_producers import ProducersQuestion, decode_question, encode_producers, encode_refusal


def register(handlers: Handlers, partitions: PartitionManager) -> None:
    def begin(request: Request) -> None:
        try:
            if request.context.node_id is None:
                raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            question = decode_question(bytes(request.body[request.body_offset :]))
            answer = encode_producers(_producers(partitions, question))
        except KafkaError as error:
            answer = encode_refusal(error.code)
        request.respond(encode_own_response(request.correlation_id, answer))

    handlers.add(OwnApiKey.FETCH_PRODUCERS, begin)


def _producers(partitions: PartitionManager, question: ProducersQuestion) -> list[ProducerEntry]:
    hosted = partitions.get_online(question.topic, question.partition)
    error = hosted.partition.check_leader(question.leader_epoch)
    if error is not ErrorCode.NONE:
        raise KafkaError(error)
    return hosted.log.producers.below(question.offset)
