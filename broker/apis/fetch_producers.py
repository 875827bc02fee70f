"""Penstock's FETCH_PRODUCERS: followers read the leader's producer state (`broker/replication/leader_producers.py`)."""

from __future__ import annotations

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.own_apis import OwnApiKey, encode_own_response
from ...storage.log.log import Log
from ..network.handlers import Handlers
from ..network.request import Request
from ..replicas.replica_manager import ReplicaManager
from ..replication.leader_producers import ProducersQuestion, answer_question, decode_question, encode_refusal


def register(handlers: Handlers, partitions: ReplicaManager) -> None:
    def begin(request: Request) -> None:
        try:
            if request.context.node_id is None:
                raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            question = decode_question(bytes(request.body[request.body_offset :]))
            log = _log_of(partitions, question)
            answer = answer_question(log.producers, question, log.aborted_since(question.offset))
        except KafkaError as error:
            answer = encode_refusal(error.code)
        request.respond(encode_own_response(request.correlation_id, answer))

    handlers.add(OwnApiKey.FETCH_PRODUCERS, begin)


def _log_of(partitions: ReplicaManager, question: ProducersQuestion) -> Log:
    partition = partitions.get_online(question.topic, question.partition)
    error = partition.state.check_leader(question.leader_epoch)
    if error is not ErrorCode.NONE:
        raise KafkaError(error)
    return partition.log
