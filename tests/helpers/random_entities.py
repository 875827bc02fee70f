"""Random entities of kio's classes: a message of every kind."""

import dataclasses
import random
import types
from datetime import UTC, datetime, timedelta
from typing import Any, Union, get_args, get_origin
from uuid import UUID

from kio.schema.errors import ErrorCode

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
UNSIGNED_BITS = {"uint16": 16, "uint32": 32}


def random_entity(entity: Any, source: random.Random) -> Any:
    """An instance of a kio class, every field random; some optional ones are None, some tagged ones default."""
    values = {}
    for field in dataclasses.fields(entity):
        if "tag" in field.metadata and field.default is not dataclasses.MISSING and source.random() < 0.4:
            continue
        values[field.name] = _random_field(field, source)
    return entity(**values)


def _random_field(field: dataclasses.Field[Any], source: random.Random) -> Any:
    annotation = field.type
    if get_origin(annotation) in (types.UnionType, Union):
        if source.random() < 0.3:
            return None
        (annotation,) = (member for member in get_args(annotation) if member is not types.NoneType)
    if get_origin(annotation) is tuple:
        inner = get_args(annotation)[0]
        return tuple(_random_value(inner, field, source) for _ in range(source.choice((0, 1, 1, 3))))
    return _random_value(annotation, field, source)


def _random_value(annotation: Any, field: dataclasses.Field[Any], source: random.Random) -> Any:
    if dataclasses.is_dataclass(annotation):
        return random_entity(annotation, source)
    kind = field.metadata["kafka_type"]
    if kind in BITS:
        bits = BITS[kind]
        return source.choice((0, -1, 1, source.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1))))
    if kind in UNSIGNED_BITS:
        return source.randrange(2 ** UNSIGNED_BITS[kind])
    match kind:
        case "bool":
            return source.random() < 0.5
        case "float64":
            return source.uniform(-1e9, 1e9)
        case "error_code":
            return source.choice(list(ErrorCode))
        case "string":
            return "".join(source.choice("abcdé☃𝄞") for _ in range(source.choice((0, 3, 200))))
        case "bytes" | "records":
            return source.randbytes(source.choice((0, 3, 200)))
        case "uuid":
            return source.choice((None, UUID(int=source.getrandbits(128))))
        case "timedelta_i32":
            return timedelta(milliseconds=source.randrange(-(2**31), 2**31))
        case "timedelta_i64":
            return timedelta(milliseconds=source.randrange(-(2**52), 2**52))
        case "datetime_i64":
            return datetime.fromtimestamp(source.randrange(2**32), UTC)
        case _:
            raise AssertionError(kind)
