"""Requests leave nothing behind that only the garbage collector could take."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from penstock.broker.network.request import Request

if TYPE_CHECKING:
    from unit.broker.conftest import DataNode, Exchange

COUNT = 300


class DeafConnection:
    """A connection that takes no notice."""

    def on_answer(self, *_: object) -> None: ...

    hold_later_requests = release_later_requests = mute = set_context = on_answer


def again(exchange: Exchange) -> Request:
    one = exchange.request
    return Request(
        DeafConnection(), one.api_key, one.api_version, one.correlation_id, one.context, one.body, one.body_offset
    )


@pytest.mark.thorough
@pytest.mark.parametrize("version", [8, 9, 11])
def test_requests_leave_no_cyclic_garbage(node: DataNode, version: int) -> None:
    node.create_topic()
    node.produce()
    produce = node.begin_produce(node.batch(), version=version)
    refused = node.begin_produce(b"", version=version)
    full = node.begin_fetch((0, 0), version=version)
    waiting = node.begin_fetch((0, 10**6), version=version)
    assert waiting.is_answered
    gc.collect()
    gc.disable()
    try:
        for _ in range(COUNT):
            at_end = node.begin_fetch((0, node.hosted().log.log_end_offset), version=version)
            parked = [again(at_end), again(at_end)]
            for request in parked:
                node.fetch_handler.begin(request)
            assert parked[1].on_disconnect is not None
            parked[1].on_disconnect()
            parked[1].on_disconnect = None
            for exchange in (produce, refused):
                node.produce_handler.begin(again(exchange))
            for exchange in (full, waiting):
                node.fetch_handler.begin(again(exchange))
            assert parked[0].answer is not None
            del at_end, parked, request, exchange
        # The exchanges of the test itself are cycles; nothing else may be among what is collected.
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        kinds = {type(found).__name__ for found in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not kinds & {
        "DelayedFetch",
        "DelayedProduce",
        "FetchablePartition",
        "FetchContext",
        "FetchRead",
        "KafkaError",
        "function",
        "partial",
    }
