"""Avro schemas as types of Spark, and values that are good, evolved or anything."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_type

from penstock.pipeline.records import avro
from penstock.pipeline.records.decoding import decode_values
from penstock.pipeline.records.errors import BadRecordError, FormatError

EVERYTHING: dict[str, Any] = {
    "type": "record",
    "name": "All",
    "namespace": "test",
    "fields": [
        {"name": "i", "type": "int"},
        {"name": "n", "type": ["null", "long"]},
        {"name": "wide", "type": ["int", "long", "null"]},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "noon", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "raw", "type": {"type": "fixed", "name": "Two", "size": 2}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "double"}},
        {"name": "inner", "type": {"type": "record", "name": "In", "fields": [{"name": "k", "type": "Kind"}]}},
        {"name": "again", "type": ["null", "test.In"]},
    ],
}
VALUE: dict[str, Any] = {
    "i": 1,
    "n": None,
    "wide": 2**40,
    "day": date(2026, 1, 2),
    "at": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    "noon": 43_200_000,
    "price": Decimal("12.34"),
    "kind": "A",
    "raw": b"ab",
    "tags": ["x", "y"],
    "counts": {"a": 0.5},
    "inner": {"k": "B"},
    "again": {"k": "A"},
}


def test_a_value_of_every_type() -> None:
    schema = avro.parse(json.dumps(EVERYTHING), "here")
    struct = avro.spark_type(schema)
    assert struct.simpleString() == (
        "struct<i:int,n:bigint,wide:bigint,day:date,at:timestamp,noon:int,price:decimal(6,2),kind:string,raw:binary,"
        "tags:array<string>,counts:map<string,double>,inner:struct<k:string>,again:struct<k:string>>"
    )
    decoder = avro.AvroDecoder(schema, None, None)
    values, reasons = decode_values([_encoded(schema, VALUE), b"", None], decoder, to_arrow_type(struct))
    (good, bad, tombstone) = values.to_pylist()
    assert good == VALUE | {"counts": [("a", 0.5)]}
    assert (bad, tombstone) == (None, None)
    assert reasons.to_pylist() == [None, "the value is not Avro of its schema: EOFError", None]


def test_one_value_that_its_type_cannot_hold_spoils_no_other() -> None:
    class Numbers:
        def decode(self, data: bytes) -> dict[str, Any]:
            return {"n": int(data)}

    struct = pa.struct([("n", pa.int8())])
    values, reasons = decode_values([b"1", b"1000", b"2"], Numbers(), struct)
    assert values.to_pylist() == [{"n": 1}, None, {"n": 2}]
    assert [reason is not None for reason in reasons.to_pylist()] == [False, True, False]


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ('"long"', "only a record has columns"),
        ('{"type":"record","name":"R","fields":[{"name":"r","type":["null","R"]}]}', "has itself inside"),
        ('{"type":"record","name":"R","fields":[{"name":"u","type":["int","string"]}]}', "has several types"),
        ('{"type":"record","name":"R","fields":[{"name":"u","type":"Gone"}]}', "names the type 'Gone'"),
        ("{", "here is no Avro schema"),
        ('{"type":"record","name":"R"}', "'fields' is missing"),
    ],
)
def test_schemas_that_have_no_type(schema: str, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        avro.spark_type(avro.parse(schema, "here"))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_bad_record(data: bytes) -> None:
    decoder = avro.AvroDecoder(avro.parse(json.dumps(EVERYTHING), "here"), None, None)
    try:
        found = decoder.decode(data)
    except BadRecordError:
        return
    assert found.keys() == VALUE.keys()


def _encoded(schema: Any, value: dict[str, Any]) -> bytes:
    data = io.BytesIO()
    fastavro.schemaless_writer(data, fastavro.parse_schema(schema), value)
    return data.getvalue()
