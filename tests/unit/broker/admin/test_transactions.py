"""/v1/transactions at one node."""

from __future__ import annotations

from typing import Any

from admin_http import asked
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.types import ProducerId, TransactionalId
from kio.static.primitive import i8, i16
from memory_node import MINUTE, World, create_topic, run
from open_transactions import leave_open
from waiting import ask_until

from penstock.client.connection import Connection

WORLD = {"transaction_partition_verification_enable": "false", "transaction_state_log_num_partitions": "2"}


def _is_begun(answer: Any) -> bool:
    return bool(answer.error_code == 0)


async def begin(connection: Connection, name: str) -> None:
    request = InitProducerIdRequest(
        transactional_id=TransactionalId(name),
        transaction_timeout=MINUTE,
        producer_id=ProducerId(-1),
        producer_epoch=i16(-1),
    )
    # Finding the coordinator makes its topic.
    await connection.call(FindCoordinatorRequest(key_type=i8(1), coordinator_keys=(name,)))
    await ask_until(lambda: connection.call(request), _is_begun)


def test_transactions_are_listed_in_pages() -> None:
    async def scenario() -> None:
        async with asked(World(**WORLD)) as (_, connection, http):
            for name in ("a", "b", "c"):
                await begin(connection, name)
            first = await (await http.get("/v1/transactions?page_size=2")).json()
            assert [one["transactional_id"] for one in first["transactions"]] == ["a", "b"]
            assert (first["next"], first["unanswered"]) == ("b", [])
            last = await (await http.get("/v1/transactions", params={"page_token": "b"})).json()
            (one,) = last["transactions"]
            assert (one["transactional_id"], one["state"], one["age_ms"], one["error"]) == ("c", "Empty", None, None)
            assert last["next"] is None
            found = await (await http.get("/v1/transactions?pattern=[ab]&state=Empty")).json()
            assert len(found["transactions"]) == 2
            assert (await http.get("/v1/transactions?page_size=0")).status == 400
            answer = await http.get("/v1/transactions", params={"pattern": "("})
            assert (await answer.json(content_type=None))["title"] == "INVALID_REGULAR_EXPRESSION"

    run(scenario)


def test_a_transaction_without_coordinator_hangs_and_can_be_aborted() -> None:
    async def scenario() -> None:
        async with asked(World(**WORLD)) as (_, connection, http):
            await create_topic(connection, "t")
            await leave_open(connection, "t")
            path = "/v1/transactions/hanging?topic=t&running_longer_ms="
            (one,) = (await (await http.get(path + "0")).json())["transactions"]
            assert (one["producer_id"], one["start_offset"], one["partition"]) == (900, 0, 0)
            assert (await (await http.get(path + str(10**15))).json())["transactions"] == []
            wrong = {"topic": "t", "partition": 0, "start_offset": 5}
            assert (await http.post("/v1/transactions/abort", json=wrong)).status == 404
            answer = await http.post("/v1/transactions/abort", json={**wrong, "start_offset": 0})
            assert answer.status == 200, await answer.text()
            assert (await (await http.get(path + "0")).json())["transactions"] == []
            assert (await http.get("/v1/transactions/hanging")).status == 400
            assert (await http.get("/v1/transactions/hanging?topic=u")).status == 404

    run(scenario)
