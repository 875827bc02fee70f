"""What kio's generated classes say of a message: the fields of one entity, in the order in which they are written.

Only kio's classes are used, not its reader: that reserves memory for as many array items as a frame *announces* (ten
hostile bytes end the process), refuses tagged fields that it does not know (KIP-482 says skip) and copies every batch.
"""

import dataclasses
import types
from dataclasses import MISSING
from datetime import timedelta
from functools import cache
from typing import Any, Union, get_args, get_origin

from kio.schema.errors import ErrorCode as KioErrorCode
from kio.static.protocol import Entity
from msgspec import Struct


class FieldSchema(Struct, frozen=True, kw_only=True):
    """One field: `kafka_type` of a primitive or `entity` of a struct, of the items when `is_array`.

    `neutral` is Kafka's default: the value where a version does not have the field.
    """

    name: str
    kafka_type: str | None
    entity: type[Entity] | None
    is_array: bool
    is_nullable: bool
    tag: int | None
    neutral: object


@cache
def fields_of(entity: type[Entity]) -> tuple[FieldSchema, ...]:
    return tuple(_field(field) for field in dataclasses.fields(entity))


def _field(field: dataclasses.Field[Any]) -> FieldSchema:
    inner, is_nullable = _without_none(field.type)
    is_array = get_origin(inner) is tuple
    if is_array:
        # Items are never null; an id of zero, which kio shows as None, is no exception.
        inner, _ = _without_none(get_args(inner)[0])
    struct = inner if dataclasses.is_dataclass(inner) else None
    kafka_type = None if struct is not None else str(field.metadata["kafka_type"])
    tag = field.metadata.get("tag")
    return FieldSchema(
        name=field.name,
        kafka_type=kafka_type,
        entity=struct,  # type: ignore[arg-type]  # every dataclass inside a kio entity is an entity
        is_array=is_array,
        is_nullable=is_nullable,
        tag=None if tag is None else int(tag),
        neutral=_neutral(field, kafka_type, struct, is_array=is_array, is_nullable=is_nullable),
    )


def _without_none(annotation: object) -> tuple[Any, bool]:
    if get_origin(annotation) in (types.UnionType, Union):
        members = get_args(annotation)
        (inner,) = (member for member in members if member is not types.NoneType)
        return inner, len(members) > 1
    return annotation, False


def _neutral(
    field: dataclasses.Field[Any], kafka_type: str | None, struct: Any, *, is_array: bool, is_nullable: bool
) -> object:
    if field.default is not MISSING:
        return field.default
    if is_nullable:
        return None
    if is_array:
        return ()
    if struct is not None:
        return struct(**{inner.name: inner.neutral for inner in fields_of(struct)})
    return _NEUTRAL.get(kafka_type or "", 0)


_NEUTRAL: dict[str, object] = {
    "bool": False,
    "bytes": b"",
    "datetime_i64": None,
    "error_code": KioErrorCode.none,
    "float64": 0.0,
    "records": b"",
    "string": "",
    "timedelta_i32": timedelta(0),
    "timedelta_i64": timedelta(0),
    "uuid": None,
}
