"""Records that are produced and read over HTTP."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any

from memory_node import produce
from rest_node import RestNode, names, run_with

from penstock.protocol.murmur2 import partition_of_key


def text(value: str) -> dict[str, str]:
    return {"type": "STRING", "data": value}


def base64(value: bytes) -> str:
    return b64encode(value).decode()


def test_a_record_of_every_type_comes_back() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t")
        results = await node.produce(
            "t",
            {"key": text("k"), "value": {"type": "JSON", "data": {"a": [1, None]}}},
            {
                "value": {"type": "BINARY", "data": base64(b"\x00\xff")},
                "headers": [{"name": "h", "value": base64(b"v")}, {"name": "n", "value": None}],
                "timestamp": "2020-01-02T03:04:05.678Z",
            },
            {"key": {"type": "JSON", "data": 5}, "value": None},
        )
        assert [one["error_code"] for one in results] == [200, 200, 200]
        assert [one["offset"] for one in results] == [0, 1, 2]
        assert results[0]["key"] == {"type": "STRING", "size": 1}
        assert results[0]["value"] == {"type": "JSON", "size": 14}
        assert (results[1]["timestamp"], results[1]["partition_id"]) == ("2020-01-02T03:04:05.678000Z", 0)
        assert (results[0]["cluster_id"], results[0]["topic_name"]) == (node.cluster_id, "t")
        read = await node.get("/topics/t/partitions/0/records")
        assert read["kind"] == "PenstockRecordList"
        assert (read["next_offset"], read["log_start_offset"], read["end_offset"]) == (3, 0, 3)
        first, second, third = read["data"]
        assert (first["key"], first["value"]) == (text("k"), {"type": "JSON", "data": {"a": [1, None]}})
        assert second["value"] == {"type": "BINARY", "data": base64(b"\x00\xff")}
        assert second["headers"] == [{"name": "h", "value": text("v")}, {"name": "n", "value": None}]
        assert second["timestamp"] == "2020-01-02T03:04:05.678000Z"
        assert (third["key"], third["value"]) == (text("5"), None)

    run_with(test)


def test_keys_choose_partitions_as_javas_clients_do() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t", 5)
        keys = [f"key-{number}" for number in range(20)]
        results = await node.produce("t", *[{"key": text(key), "value": text("v")} for key in keys])
        assert names({"data": results}, "partition_id") == [partition_of_key(key.encode(), 5) for key in keys]
        (placed,) = await node.produce("t", {"partition_id": 3, "key": text("key-0"), "value": text("v")})
        assert placed["partition_id"] == 3

    run_with(test)


def test_records_without_a_key_use_all_partitions() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t", 3)

        async def three_batches() -> AsyncIterator[bytes]:
            # As many as are sent together, three times.
            yield b'{"value":{"type":"STRING","data":"v"}}' * 1_500

        results = await node.produce_bytes("t", three_batches())
        assert {one["partition_id"] for one in results} == {0, 1, 2}

    run_with(test)


def test_what_is_wrong_with_one_record_is_its_own_result() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t", max_message_bytes="200", message_timestamp_after_max_ms="1000")
        results = await node.produce(
            "t",
            {"value": text("a")},
            {"value": {"type": "BINARY", "data": "no base64!"}},
            {"value": {"type": "STRING", "data": 5}},
            {"value": {"type": "AVRO", "data": 5}},
            {"value": {"type": "JSON", "data": 5, "schema_id": 7}},
            {"partition_id": 1, "value": text("b")},
            {"value": text("x" * 500)},
            {"value": text("c"), "timestamp": "2100-01-01T00:00:00Z"},
            {"value": text("c"), "timestamp": "1969-01-01T00:00:00Z"},
            {"value": text("d")},
        )
        assert [one["error_code"] for one in results] == [200, 400, 400, 400, 400, 3, 10, 32, 400, 200]
        assert "no partition 1" in results[5]["message"]
        assert "1970" in results[8]["message"]
        read = await node.get("/topics/t/partitions/0/records")
        assert [one["value"]["data"] for one in read["data"]] == ["a", "d"]

    run_with(test)


def test_what_is_no_json_ends_the_stream() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t")
        good = b'{"value": {"type": "STRING", "data": "v"}}'
        for body, codes, sentence in (
            (good + b" [" + good, [200, 400], "begins with"),
            (good + good + b"x" + good, [200, 200, 400], "begins with"),
            (good + b'{"value":', [200, 400], "in the middle"),
            (b"", [400], "no record"),
            (b"{5}", [400], "The record"),
        ):
            results = await node.produce_bytes("t", body)
            assert [one["error_code"] for one in results] == codes, body
            assert sentence in results[-1]["message"]

    run_with(test)


def test_each_record_has_its_result_while_the_stream_goes_on() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t")
        seen: asyncio.Queue[None] = asyncio.Queue()

        async def records() -> AsyncIterator[bytes]:
            for number in range(3):
                yield json.dumps({"value": text(str(number))}).encode()
                # The next one is sent when the result of this one is there.
                await seen.get()

        path = f"{node.root}/topics/t/records"
        headers = {"Content-Type": "application/json"}
        async with node.session.post(path, data=records(), headers=headers) as answer:
            async for line in answer.content:
                assert json.loads(line)["error_code"] == 200
                seen.put_nowait(None)
        assert (await node.get("/topics/t/partitions/0/offset"))["latest_offset"] == 3

    run_with(test)


def test_a_batch_names_its_entries() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t")
        entries: list[dict[str, Any]] = [
            {"id": "1", "value": text("a")},
            {"id": "2", "value": {"type": "BINARY", "data": "?"}},
            {"id": "3", "key": text("k"), "value": text("c")},
        ]
        answer = await node.ask("POST", "/topics/t/records:batch", {"entries": entries}, status=207)
        assert [(one["id"], one["offset"]) for one in answer["successes"]] == [("1", 0), ("3", 1)]
        assert [(one["id"], one["error_code"]) for one in answer["failures"]] == [("2", 400)]
        twice = {"entries": [entries[0], entries[0]]}
        assert await node.refused("POST", "/topics/t/records:batch", twice, status=400) == "Bad Request"
        assert await node.refused("POST", "/topics/t/records:batch", {"entries": []}, status=400) == "Bad Request"

    run_with(test)


def test_a_topic_that_is_not_there_is_not_found() -> None:
    async def test(node: RestNode) -> None:
        for method, path, body in (
            ("POST", "/topics/u/records", {"value": text("v")}),
            ("POST", "/topics/u/records:batch", {"entries": [{"id": "1"}]}),
            ("GET", "/topics/u/records", None),
            ("GET", "/topics/u/partitions/0/records", None),
        ):
            assert await node.refused(method, path, body, status=404) == "UNKNOWN_TOPIC_OR_PARTITION"
        assert (await node.get("/topics"))["data"] == []

    run_with(test)


def test_records_are_read_from_an_offset_a_time_or_the_end() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t")
        await node.produce(
            "t", *[{"value": text(str(number)), "timestamp": f"2020-01-01T00:00:0{number}Z"} for number in range(8)]
        )
        path = "/topics/t/partitions/0/records"
        assert names(await node.get(f"{path}?limit=3"), "offset") == [5, 6, 7]
        page = await node.get(f"{path}?offset=1&limit=3")
        assert (names(page, "offset"), page["next_offset"]) == ([1, 2, 3], 4)
        following = await (await node.session.get(page["metadata"]["next"])).json()
        assert names(following, "offset") == [4, 5, 6]
        assert names(await node.get(f"{path}?timestamp=1577836803500"), "offset") == [4, 5, 6, 7]
        assert names(await node.get(f"{path}?timestamp=1577900000000"), "offset") == []
        at_end = await node.get(f"{path}?offset=8")
        assert (at_end["data"], at_end["next_offset"]) == ([], 8)
        assert await node.refused("GET", f"{path}?offset=9", status=400) == "OFFSET_OUT_OF_RANGE"
        await node.get(f"{path}?offset=1&timestamp=1", status=400)
        await node.get(f"{path}?limit=1001", status=400)
        # One that is larger than what was asked for comes alone.
        assert names(await node.get(f"{path}?offset=0&max_bytes=1"), "offset") == [0]

    run_with(test)


def test_records_of_all_partitions_are_read_by_time() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t", 3)
        records = [
            {"partition_id": number % 3, "value": text(str(number)), "timestamp": f"2020-01-01T00:00:0{number}Z"}
            for number in range(9)
        ]
        await node.produce("t", *records)

        async def values(query: str) -> list[str]:
            return [one["value"]["data"] for one in (await node.get(f"/topics/t/records{query}"))["data"]]

        assert await values("") == [str(number) for number in range(9)]
        assert await values("?limit=4") == ["5", "6", "7", "8"]
        assert await values("?from=earliest&limit=4") == ["0", "1", "2", "3"]
        assert await values("?timestamp=1577836806000") == ["6", "7", "8"]
        await node.get("/topics/t/records?from=middle", status=400)

    run_with(test)


def test_a_topic_of_too_many_partitions_is_read_by_partition() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t", 257)
        problem = await node.ask("GET", "/topics/t/records", status=400)
        assert "name one of them" in problem["detail"]

    run_with(test)


def test_a_record_of_any_client_can_be_shown() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t", message_timestamp_before_max_ms=str(2**63 - 1))
        for value in (b"\xff", b"{no json", b"[" * 2_000 + b"]" * 2_000, b'{"a": 12345678901234567890123}'):
            await produce(node.connection, "t", value, timestamp_ms=-1)
        first, second, third, fourth = (await node.get("/topics/t/partitions/0/records"))["data"]
        assert (first["value"], first["timestamp"]) == ({"type": "BINARY", "data": base64(b"\xff")}, None)
        assert second["value"] == text("{no json")
        assert third["value"]["type"] == "STRING"
        assert fourth["value"] == {"type": "JSON", "data": {"a": 12345678901234567890123}}

    run_with(test)
