"""CreateTopics, DeleteTopics, CreatePartitions: what is decided before the controller is asked."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.create_topics.v7.response import CreateTopicsResponse

from penstock.broker.apis.topics import automatic_creation, check_time
from penstock.broker.network.peer_log import PeerLog
from penstock.broker.network.request import RequestContext
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.messages import NO_THROTTLE


@pytest.mark.parametrize("milliseconds", [0, -1])
def test_request_without_time_is_timed_out(milliseconds: int) -> None:
    with pytest.raises(KafkaError) as caught:
        check_time(timedelta(milliseconds=milliseconds))
    assert caught.value.code == ErrorCode.REQUEST_TIMED_OUT
    check_time(timedelta(milliseconds=1))


@pytest.mark.parametrize("wanted", [(5, 2), (-1, -1)])
def test_topics_are_created_automatically_with_what_the_broker_was_told(wanted: tuple[int, int]) -> None:
    asked: list[Any] = []

    class Controller:
        async def submit(self, _request: Any, message: Any, *, requester: object = None) -> Any:  # noqa: ARG002
            asked.extend(message.topics)
            return CreateTopicsResponse(throttle_time=NO_THROTTLE, topics=())

    async def settled() -> None:
        pass

    async def scenario() -> None:
        partition_count, replication_factor = wanted
        create = automatic_creation(
            Controller(),
            partition_count=partition_count,
            replication_factor=replication_factor,
            settled=settled,
            peer_log=PeerLog(asyncio.get_running_loop()),
        )
        context = RequestContext(listener_name="L", peer_host="192.0.2.1", client_id=None)
        await create(("a", "b"), context)

    asyncio.run(scenario())
    assert [(one.name, one.num_partitions, one.replication_factor) for one in asked] == [("a", *wanted), ("b", *wanted)]
