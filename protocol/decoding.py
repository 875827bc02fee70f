"""Readers of whole entities, compiled from their schema: a message of one version becomes the class of another."""

from collections.abc import Callable, Mapping
from functools import partial
from struct import Struct
from typing import TypeAlias

from kio.static.protocol import Entity

from .errors import CorruptData
from .primitives import FIXED, Buffer, Reader, array_reader, fixed_reader, from_wire, read_tags, sized_reader
from .schemas import FieldSchema, fields_of
from .versions import upgrade_of

_Values: TypeAlias = dict[str, object]
_Step: TypeAlias = Callable[[Buffer, int, _Values], int]
EntityReader: TypeAlias = Callable[[Buffer, int], tuple[Entity, int]]


def entity_reader(
    version_class: type[Entity], target_class: type[Entity], *, is_of_client: bool = False
) -> EntityReader:
    """A reader of `version_class` as it is on the wire that gives a `target_class`; see `sized_reader`.

    LookupError when the target lacks a field and `versions` does not say what becomes of it.
    """
    is_flexible = version_class.__flexible__
    present = fields_of(version_class)
    wanted = {field.name: field for field in fields_of(target_class)}
    readers = {
        field.name: partial(_field_reader, field, wanted.get(field.name), is_flexible, is_of_client=is_of_client)
        for field in present
    }
    steps = _steps([field for field in present if field.tag is None], readers)
    tagged = {field.tag: (field.name, readers[field.name]()) for field in present if field.tag is not None}
    always_read = {field.name for field in present if field.tag is None}
    absent = {name: field.neutral for name, field in wanted.items() if name not in always_read}
    upgrade = upgrade_of(version_class, target_class)

    def read(buffer: Buffer, position: int) -> tuple[Entity, int]:
        values = absent.copy()
        for step in steps:
            position = step(buffer, position, values)
        if is_flexible:
            position = _read_tagged(buffer, position, values, tagged)
        if upgrade is not None:
            upgrade(values)
        return target_class(**values), position

    return read


def _steps(fields: list[FieldSchema], readers: Mapping[str, Callable[[], Reader]]) -> tuple[_Step, ...]:
    """One step for each run of fixed-size fields, which `struct` reads at once, and one for each other field."""
    steps: list[_Step] = []
    run: list[FieldSchema] = []
    for field in fields:
        if field.kafka_type in FIXED and not field.is_array:
            run.append(field)
            continue
        if run:
            steps.append(_run_step(run))
            run = []
        steps.append(_single_step(field.name, readers[field.name]()))
    if run:
        steps.append(_run_step(run))
    return tuple(steps)


def _run_step(fields: list[FieldSchema]) -> _Step:
    layout = Struct(">" + "".join(FIXED[field.kafka_type or ""] for field in fields))
    names = tuple(field.name for field in fields)
    converters = [
        (field.name, convert) for field in fields if (convert := from_wire(field.kafka_type or "")) is not None
    ]

    def step(buffer: Buffer, position: int, values: _Values) -> int:
        values.update(zip(names, layout.unpack_from(buffer, position), strict=True))
        for name, convert in converters:
            values[name] = convert(values[name])
        return position + layout.size

    return step


def _single_step(name: str, read: Reader) -> _Step:
    def step(buffer: Buffer, position: int, values: _Values) -> int:
        values[name], position = read(buffer, position)
        return position

    return step


def _field_reader(field: FieldSchema, target: FieldSchema | None, is_flexible: bool, *, is_of_client: bool) -> Reader:
    item: Reader
    if field.entity is not None:
        goal = target.entity if target is not None and target.entity is not None else field.entity
        item = entity_reader(field.entity, goal, is_of_client=is_of_client)
        if field.is_nullable and not field.is_array:
            item = _nullable_reader(item)
    elif field.kafka_type in FIXED:
        item = fixed_reader(field.kafka_type)
    else:
        is_nullable = field.is_nullable and not field.is_array
        item = sized_reader(
            field.kafka_type or "", is_flexible=is_flexible, is_nullable=is_nullable, is_of_client=is_of_client
        )
    if field.is_array:
        return array_reader(item, is_flexible=is_flexible, is_nullable=field.is_nullable)
    return item


def _nullable_reader(read: Reader) -> Reader:
    """A struct that may be null has a byte before it, below zero for null (KIP-893)."""

    def read_nullable(buffer: Buffer, position: int) -> tuple[object, int]:
        if buffer[position] >= 0x80:
            return None, position + 1
        return read(buffer, position + 1)

    return read_nullable


def _read_tagged(buffer: Buffer, position: int, values: _Values, tagged: Mapping[int, tuple[str, Reader]]) -> int:
    """Tagged fields; those of tags not known here are skipped, as KIP-482 demands of every reader."""
    tags, position = read_tags(buffer, position)
    for tag, raw in tags.items():
        if tag in tagged:
            name, read = tagged[tag]
            values[name], size = read(raw, 0)
            if size != len(raw):
                raise CorruptData(f"tag {tag} ({name}) announces {len(raw)} bytes and has {size}")
    return position
