"""The topic of a coordinator is made once, and no request waits long for that."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kio.schema.create_topics.v7.response import CreateTopicsResponse

from penstock.broker.coordinators import internal_topic
from penstock.broker.coordinators.internal_topic import InternalTopic
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.quorum.metadata.image import EMPTY_IMAGE


class SlowController:
    """Answers when it is told to, that there is no controller to ask."""

    def __init__(self) -> None:
        self.asked_count = 0
        self.may_answer = asyncio.Event()

    async def submit(self, _request: Any, _message: Any) -> CreateTopicsResponse:
        self.asked_count += 1
        await self.may_answer.wait()
        raise KafkaError(ErrorCode.NOT_CONTROLLER)


def internal_topic_of(controller: Any) -> InternalTopic:
    async def settled() -> None: ...

    return InternalTopic(
        "__states",
        lambda: EMPTY_IMAGE,
        controller,
        settled=settled,
        partition_count=1,
        replication_factor=1,
        is_replication_factor_capped=True,
        configs=lambda _: {},
    )


def test_clients_wait_a_bounded_time_for_one_creation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(internal_topic, "CREATION_WAIT_S", 0.01)

    async def main() -> None:
        controller = SlowController()
        topic = internal_topic_of(controller)
        async with asyncio.timeout(10):
            await asyncio.gather(topic.ensure(), topic.ensure())
            await topic.ensure()
        assert controller.asked_count == 1, "the creation goes on"
        controller.may_answer.set()
        await topic.ensure()
        await topic.ensure()
        assert controller.asked_count == 2, "one that failed is tried again"

    asyncio.run(main())


def test_a_client_that_goes_does_not_end_the_creation_for_others() -> None:
    async def main() -> None:
        controller = SlowController()
        topic = internal_topic_of(controller)
        gone, waiting = (asyncio.ensure_future(topic.ensure()) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait((gone,))
        controller.may_answer.set()
        async with asyncio.timeout(10):
            await waiting
        assert controller.asked_count == 1

    asyncio.run(main())


def test_a_topic_that_cannot_be_made_has_one_line_for_each_cause(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        controller = SlowController()
        controller.may_answer.set()
        topic = internal_topic_of(controller)
        for _ in range(100):
            await topic.ensure()
        assert controller.asked_count == 100

    asyncio.run(main())
    assert caplog.text.count("Auto topic creation failed: topic=__states reason=") == 1
