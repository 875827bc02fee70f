"""Each format on real Spark, from topics of three nodes: good, evolved and poisoned values side by side."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import fastavro
import pytest
from pipeline_topics import Sent, create_topics, produce
from protobuf_files import descriptor_set, file, message_class
from schema_registry import USER_INFO, Registered, SchemaRegistry, schema_registry

from penstock.pipeline.config import JobConfig
from penstock.pipeline.records.decoding import decode
from penstock.pipeline.records.value_format import ValueFormat
from penstock.pipeline.source import read_topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

V1: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Trip",
    "namespace": "test",
    "fields": [{"name": "id", "type": "int"}, {"name": "gone", "type": "string"}],
}
V2: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Trip",
    "namespace": "test",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "city", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
    ],
}
GOOD: Final = 300


def test_avro_of_mixed_schema_ids_comes_as_the_newest_and_poison_is_told(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    create_topics(bootstrap, "trips")
    with schema_registry() as registry:
        registry.register(11, Registered(schema=json.dumps(V1)), subject="trips-value")
        registry.register(12, Registered(schema=json.dumps(V2)), subject="trips-value")
        registry.register(13, Registered(schema='{"type":"object"}', kind="JSON"))
        poison = {
            b"\0\0\0\0\x63zz": "the schema registry has no schema of id 99",
            b"\0\0\0\0\x0dzz": "schema 13 is JSON, not AVRO",
            b"\x01\0\0\0\x0b": "the value starts with byte 0x01, and the wire format with 0x00",
            b"": "the value has 0 bytes, and the wire format starts with 5",
            b"\0\0\0\0\x0c" + b"\xff" * 11: "the value is not Avro of its schema",
            _framed(11, _avro(V1, {"id": 1, "gone": ""})) + b"!": "1 bytes follow the value",
        }
        produce(
            bootstrap,
            "trips",
            [
                *(Sent(key=str(number), value=_trip(number)) for number in range(GOOD)),
                *(Sent(key="poison", value=value) for value in poison),
                Sent(key="tombstone", value=None),
            ],
        )
        rows = _decoded(
            spark,
            bootstrap,
            "trips",
            ValueFormat(format="avro", wire_format=True, registry=_access(registry)),
            tmp_path,
        )
        asked = [path for path in registry.asked if path.startswith("/schemas/ids/1")]
    good = {row.value.id: row.value for row in rows if row.value is not None}
    assert len(good) == GOOD
    for number, value in good.items():
        is_new = number % 3 == 0
        assert value.city == (f"c{number}" if is_new else None)
        assert value.at.timestamp() == (1_767_225_600 + number if is_new else 0)
        assert value.tags == (["a", "b"] if is_new else [])
    reasons = {bytes(row.encoded): row.reason for row in rows if row.key == b"poison"}
    assert reasons.keys() == poison.keys()
    for value, reason in poison.items():
        assert reason in reasons[value]
    (tombstone,) = (row for row in rows if row.key == b"tombstone")
    assert (tombstone.value, tombstone.reason) == (None, None)
    # Once for each process that decodes, not for each record.
    assert len(asked) <= 3 * 2


def test_a_registry_that_does_not_answer_ends_the_query_and_marks_no_record(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    create_topics(bootstrap, "unanswered", partition_count=1)
    produce(bootstrap, "unanswered", [Sent(value=_framed(21, _avro(V1, {"id": 1, "gone": ""})))])
    schema = tmp_path / "reader.avsc"
    schema.write_text(json.dumps(V1))
    with schema_registry() as registry:
        registry.failures = [503] * 3
        properties = ValueFormat(format="avro", wire_format=True, schema=str(schema), registry={"url": registry.url})
        with pytest.raises(Exception, match="schemas/ids/21 answers 503"):
            _decoded(spark, bootstrap, "unanswered", properties, tmp_path)


def test_protobuf_with_references_and_message_indexes(spark: SparkSession, bootstrap: str, tmp_path: Path) -> None:
    place = file("place.proto", "geo", {"Place": [("city", 1, "string"), ("lat", 2, "double")]})
    old = file("trip.proto", "trips", {"Other": [], "Trip": [("id", 1, "int64")]})
    new = file(
        "trip.proto",
        "trips",
        {"Other": [], "Trip": [("id", 1, "int64"), ("to", 2, "geo.Place"), ("n", 3, "repeated uint64")]},
        imports=("place.proto",),
    )
    reference = {"name": "place.proto", "subject": "place", "version": 1}
    trip = message_class("trips.Trip", place, new)
    values = [trip(id=number, to={"city": f"c{number}"}, n=[2**64 - 1]) for number in range(GOOD)]
    create_topics(bootstrap, "proto")
    with schema_registry() as registry:
        registry.register(1, _registered(place), subject="place")
        registry.register(31, _registered(old), subject="proto-value")
        registry.register(32, _registered(new, reference), subject="proto-value")
        poison = {
            _framed(32, b"\x02\x00" + b"\x08\x01"): "a trips.Other (schema 32), and a trips.Trip is expected",
            _framed(32, b"\x02\x0e" + b"\x08\x01"): "message indexes [7] lead to no message",
            _framed(32, b"\x02\x02\xff\xff"): "the value is not Protobuf",
            b"\0\0\0\0\x63\0": "no schema of id 99",
        }
        produce(
            bootstrap,
            "proto",
            [
                *(Sent(value=_framed(32, b"\x02\x02" + value.SerializeToString())) for value in values),
                Sent(value=_framed(31, b"\x02\x02" + message_class("trips.Trip", old)(id=-1).SerializeToString())),
                *(Sent(key="poison", value=value) for value in poison),
            ],
        )
        properties = ValueFormat(format="protobuf", wire_format=True, message="trips.Trip", registry=_access(registry))
        rows = _decoded(spark, bootstrap, "proto", properties, tmp_path)
    good = {row.value.id: row.value for row in rows if row.value is not None}
    assert good.keys() == {-1, *range(GOOD)}
    assert (good[-1].to, good[-1].n) == (None, [])
    assert (good[7].to.city, good[7].to.lat, good[7].n) == ("c7", 0.0, [2**64 - 1])
    reasons = {bytes(row.encoded): row.reason for row in rows if row.key == b"poison"}
    assert reasons.keys() == poison.keys()
    for value, reason in poison.items():
        assert reason in reasons[value]


def test_plain_avro_and_protobuf_and_framed_json_by_files(spark: SparkSession, bootstrap: str, tmp_path: Path) -> None:
    trip = file("trip.proto", "trips", {"Trip": [("id", 1, "int64")]})
    (tmp_path / "trip.desc").write_bytes(descriptor_set(trip))
    (tmp_path / "trip.avsc").write_text(json.dumps(V2))
    formats: dict[str, tuple[bytes, ValueFormat]] = {
        "plain-avro": (
            _avro(V2, {"id": 5, "city": None, "at": 0, "tags": []}),
            ValueFormat(format="avro", schema=str(tmp_path / "trip.avsc")),
        ),
        "plain-protobuf": (
            message_class("trips.Trip", trip)(id=5).SerializeToString(),
            ValueFormat(format="protobuf", schema=str(tmp_path / "trip.desc")),
        ),
        "framed-json": (_framed(3, b'{"id":5}'), ValueFormat(format="json", wire_format=True, schema="id BIGINT")),
    }
    for topic, (value, properties) in formats.items():
        create_topics(bootstrap, topic, partition_count=1)
        produce(bootstrap, topic, [Sent(value=value), Sent(value=b"\xff\xff\xff")])
        good, bad = _decoded(spark, bootstrap, topic, properties, tmp_path)
        assert good.value.id == 5, topic
        assert good.reason is None, topic
        assert bad.value is None, topic
        assert bad.reason, topic


def _decoded(spark: SparkSession, bootstrap: str, topic: str, properties: ValueFormat, folder: Path) -> list[Any]:
    """By a stream, as jobs do it."""
    config = JobConfig(bootstrap=bootstrap, checkpoint=str(folder), topics=(topic,))
    decoded = decode(read_topics(spark, config), properties, topic)
    rows: list[Any] = []

    def collect(batch: DataFrame, _batch_id: int) -> None:
        rows.extend(batch.orderBy("partition", "offset").collect())

    query = decoded.writeStream.foreachBatch(collect).option("checkpointLocation", str(folder / f"c-{topic}"))
    query.trigger(availableNow=True).start().awaitTermination()
    assert rows
    return rows


def _access(registry: SchemaRegistry) -> dict[str, str]:
    return {"url": registry.url, "basic.auth.user.info": USER_INFO}


def _trip(number: int) -> bytes:
    if number % 3:
        return _framed(11, _avro(V1, {"id": number, "gone": "x"}))
    at_ms = (1_767_225_600 + number) * 1_000
    return _framed(12, _avro(V2, {"id": number, "city": f"c{number}", "at": at_ms, "tags": ["a", "b"]}))


def _avro(schema: dict[str, Any], value: dict[str, Any]) -> bytes:
    data = io.BytesIO()
    fastavro.schemaless_writer(data, fastavro.parse_schema(schema), value)
    return data.getvalue()


def _framed(schema_id: int, body: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + body


def _registered(proto: Any, *references: dict[str, Any]) -> Registered:
    """As a registry stores it: without the file's name."""
    unnamed = type(proto).FromString(proto.SerializeToString())
    unnamed.ClearField("name")
    schema = base64.b64encode(unnamed.SerializeToString()).decode()
    return Registered(schema=schema, kind="PROTOBUF", references=references)
