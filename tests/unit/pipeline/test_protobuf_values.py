"""Protobuf messages as types of Spark, and values that are good, evolved or anything."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protobuf_files import descriptor_set, file, message_class

from penstock.pipeline.records import protobuf
from penstock.pipeline.records.errors import BadRecordError, FormatError
from penstock.pipeline.records.protobuf import MessageType
from penstock.pipeline.records.registry import StoredSchema
from penstock.pipeline.records.schema_source import DESCRIPTOR_SET

TRIP = file(
    "trip.proto",
    "t",
    {
        "Trip": [
            ("id", 1, "int64"),
            ("seats", 2, "optional int32"),
            ("big", 3, "uint64"),
            ("tags", 4, "repeated string"),
            ("stops", 5, "repeated t.Trip.Stop"),
            ("raw", 6, "bytes"),
            ("first", 7, "t.Trip.Stop"),
        ],
        "Trip.Stop": [("city", 1, "string")],
        "Loop": [("inner", 1, "t.Loop")],
    },
)


def _message(name: str = "", *, files: bytes | None = None) -> MessageType:
    data = descriptor_set(TRIP) if files is None else files
    stored = StoredSchema(schema=base64.b64encode(data).decode(), schemaType=DESCRIPTOR_SET)
    return protobuf.reader_type(stored, None, name, "here")


def test_a_value_of_many_types() -> None:
    message = _message()
    assert protobuf.spark_type(message).simpleString() == (
        "struct<id:bigint,seats:int,big:decimal(20,0),tags:array<string>,stops:array<struct<city:string>>,raw:binary,"
        "first:struct<city:string>>"
    )
    trip = message_class("t.Trip", TRIP)(id=7, big=2**64 - 1, tags=["x"], stops=[{"city": "a"}], raw=b"\xff")
    assert protobuf.ProtobufDecoder(message, None, None).decode(trip.SerializeToString()) == {
        "id": 7,
        "seats": None,
        "big": Decimal(2**64 - 1),
        "tags": ["x"],
        "stops": [{"city": "a"}],
        "raw": b"\xff",
        "first": None,
    }


def test_timestamps_enums_and_maps() -> None:
    from google.protobuf import descriptor_pb2, timestamp_pb2

    made = file(
        "more.proto",
        "t",
        {"More": [("at", 1, "google.protobuf.Timestamp")]},
        imports=("google/protobuf/timestamp.proto",),
    )
    kind = made.enum_type.add(name="Kind")
    kind.value.add(name="NONE", number=0)
    kind.value.add(name="FAST", number=1)
    more = made.message_type[0]
    types = descriptor_pb2.FieldDescriptorProto
    more.field.add(name="kinds", number=2, label=types.LABEL_REPEATED, type=types.TYPE_ENUM, type_name=".t.Kind")
    entry = more.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=types.LABEL_OPTIONAL, type=types.TYPE_STRING)
    entry.field.add(name="value", number=2, label=types.LABEL_OPTIONAL, type=types.TYPE_INT32)
    more.field.add(
        name="counts", number=3, label=types.LABEL_REPEATED, type=types.TYPE_MESSAGE, type_name=".t.More.CountsEntry"
    )
    message = _message(files=descriptor_set(made))
    assert protobuf.spark_type(message).simpleString() == (
        "struct<at:timestamp,kinds:array<string>,counts:map<string,int>>"
    )
    timestamp = descriptor_pb2.FileDescriptorProto.FromString(timestamp_pb2.DESCRIPTOR.serialized_pb)
    value = message_class("t.More", timestamp, made)(kinds=[1, 5], counts={"a": 2})
    value.at.seconds, value.at.nanos = 1_767_225_600, 5_000
    decoder = protobuf.ProtobufDecoder(message, None, None)
    assert decoder.decode(value.SerializeToString()) == {
        "at": datetime(2026, 1, 1, 0, 0, 0, 5, tzinfo=UTC),
        "kinds": ["FAST", "5"],
        "counts": [("a", 2)],
    }
    value.at.seconds = 2**60
    with pytest.raises(BadRecordError, match="is no timestamp that Spark has"):
        decoder.decode(value.SerializeToString())


def test_indexes_lead_to_nested_messages() -> None:
    serialized = TRIP.SerializeToString()
    assert protobuf.message_name(serialized, (0,)) == "t.Trip"
    assert protobuf.message_name(serialized, (0, 0)) == "t.Trip.Stop"
    with pytest.raises(BadRecordError, match=r"\[0, 1\] lead to no message"):
        protobuf.message_name(serialized, (0, 1))


def test_schemas_that_have_no_type() -> None:
    with pytest.raises(FormatError, match=r"t\.Loop has itself inside"):
        protobuf.spark_type(_message("t.Loop"))
    with pytest.raises(FormatError, match=r"no message t\.Gone"):
        protobuf.spark_type(_message("t.Gone"))
    with pytest.raises(FormatError, match=r"Depends on file .b\.proto."):
        _message(files=descriptor_set(file("a.proto", "a", {"A": []}, imports=("b.proto",))))
    with pytest.raises(FormatError, match="no serialized Protobuf descriptor"):
        _message(files=b"\xff\xff")


@given(st.binary(max_size=100))
def test_any_bytes_are_a_value_or_a_bad_record(data: bytes) -> None:
    decoder = protobuf.ProtobufDecoder(_message(), None, None)
    try:
        found = decoder.decode(data)
    except BadRecordError:
        return
    assert "id" in found
