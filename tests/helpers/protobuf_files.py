"""Protobuf schemas that a test makes without a compiler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Field = tuple[str, int, str]
"""Name, number, and type: `int64`, `repeated string`, `optional int32`, or the full name of a message."""


def file(
    name: str, package: str, messages: Mapping[str, list[Field]], *, imports: tuple[str, ...] = ()
) -> descriptor_pb2.FileDescriptorProto:
    """In proto3. A message called `A.B` is nested in `A`, which comes before it."""
    made = descriptor_pb2.FileDescriptorProto(name=name, package=package, syntax="proto3", dependency=imports)
    by_name: dict[str, Any] = {}
    for full, fields in messages.items():
        outer, _, inner = full.rpartition(".")
        message = by_name[outer].nested_type.add(name=inner) if outer else made.message_type.add(name=full)
        by_name[full] = message
        for field_name, number, kind in fields:
            _add_field(message, field_name, number, kind)
    return made


def _add_field(message: Any, name: str, number: int, kind: str) -> None:
    label, _, single = kind.rpartition(" ")
    types = descriptor_pb2.FieldDescriptorProto
    field = message.field.add(name=name, number=number)
    field.label = types.LABEL_REPEATED if label == "repeated" else types.LABEL_OPTIONAL
    if label == "optional":
        field.proto3_optional = True
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{name}")
    if "." in single:
        field.type, field.type_name = types.TYPE_MESSAGE, f".{single}"
    else:
        field.type = getattr(types, f"TYPE_{single.upper()}")


def message_class(name: str, *files: descriptor_pb2.FileDescriptorProto) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for one in files:
        pool.Add(one)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def descriptor_set(*files: descriptor_pb2.FileDescriptorProto) -> bytes:
    data: bytes = descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()
    return data
