"""Writers of whole entities, compiled from their schema: the class of one version is written as another version."""

from collections.abc import Callable
from operator import attrgetter
from struct import Struct
from typing import NamedTuple, TypeAlias

from kio.static.protocol import Entity

from .primitives import FIXED, Writer, array_writer, fixed_writer, sized_writer, to_wire, uvarint
from .schemas import FieldSchema, fields_of
from .versions import downgrade_of

_Getter: TypeAlias = Callable[[object], object]


class _Tagged(NamedTuple):
    tag: int
    get: _Getter
    default: object
    write: Writer


def entity_writer(version_class: type[Entity], source_class: type[Entity] | None) -> Writer:
    """A writer of entities of `source_class` in the form of `version_class`.

    Fields that the version lacks are left out; for those that only the version has, `versions` knows what to write, or
    LookupError. Without a source class the fields are taken by name as they are.
    """
    is_flexible = version_class.__flexible__
    sources = None if source_class is None else {field.name: field for field in fields_of(source_class)}
    getters: dict[str, _Getter] = {}
    untagged: list[FieldSchema] = []
    tagged: list[_Tagged] = []
    for field in fields_of(version_class):
        derived = None if source_class is None else downgrade_of(version_class, source_class, field.name)
        getters[field.name] = attrgetter(field.name) if derived is None else derived
        if field.tag is None:
            untagged.append(field)
        else:
            # A struct equals the default of its own class only.
            default = (sources or {}).get(field.name, field).neutral
            writer = _field_writer(field, sources, is_flexible)
            tagged.append(_Tagged(field.tag, getters[field.name], default, writer))
    steps = _steps(untagged, getters, sources, is_flexible)
    write_tags = _tag_writer(sorted(tagged, key=attrgetter("tag"))) if is_flexible else None

    def write(out: bytearray, entity: object) -> None:
        for step in steps:
            step(out, entity)
        if write_tags is not None:
            write_tags(out, entity)

    return write


def _steps(
    fields: list[FieldSchema],
    getters: dict[str, _Getter],
    sources: dict[str, FieldSchema] | None,
    is_flexible: bool,
) -> tuple[Writer, ...]:
    """One step for each run of fixed-size fields, which `struct` packs at once, and one for each other field."""
    steps: list[Writer] = []
    run: list[FieldSchema] = []
    for field in fields:
        if field.kafka_type in FIXED and not field.is_array:
            run.append(field)
            continue
        if run:
            steps.append(_run_step(run, getters))
            run = []
        steps.append(_single_step(getters[field.name], _field_writer(field, sources, is_flexible)))
    if run:
        steps.append(_run_step(run, getters))
    return tuple(steps)


def _run_step(fields: list[FieldSchema], getters: dict[str, _Getter]) -> Writer:
    pack = Struct(">" + "".join(FIXED[field.kafka_type or ""] for field in fields)).pack
    values = tuple(
        _converted(getters[field.name], to_wire(field.kafka_type or "", is_nullable=field.is_nullable))
        for field in fields
    )

    def step(out: bytearray, entity: object) -> None:
        out += pack(*[value(entity) for value in values])

    return step


def _converted(get: _Getter, convert: _Getter | None) -> _Getter:
    if convert is None:
        return get
    return lambda entity: convert(get(entity))


def _single_step(get: _Getter, write: Writer) -> Writer:
    def step(out: bytearray, entity: object) -> None:
        write(out, get(entity))

    return step


def _field_writer(field: FieldSchema, sources: dict[str, FieldSchema] | None, is_flexible: bool) -> Writer:
    item: Writer
    if field.entity is not None:
        source = None if sources is None else sources.get(field.name)
        item = entity_writer(field.entity, None if source is None else source.entity)
        if field.is_nullable and not field.is_array:
            item = _nullable_writer(item)
    elif field.kafka_type in FIXED:
        item = fixed_writer(field.kafka_type, is_nullable=field.is_nullable)
    else:
        is_nullable = field.is_nullable and not field.is_array
        item = sized_writer(field.kafka_type or "", is_flexible=is_flexible, is_nullable=is_nullable)
    if field.is_array:
        return array_writer(item, is_flexible=is_flexible, is_nullable=field.is_nullable)
    return item


def _nullable_writer(write: Writer) -> Writer:
    """A struct that may be null has a byte before it: -1 for null, else 1 (KIP-893)."""

    def write_nullable(out: bytearray, value: object) -> None:
        if value is None:
            out += b"\xff"
        else:
            out += b"\x01"
            write(out, value)

    return write_nullable


def _tag_writer(tagged: list[_Tagged]) -> Writer:
    """Tagged fields in the order of their tags; those that have their default are left out."""

    def write(out: bytearray, entity: object) -> None:
        count = 0
        parts = bytearray()
        for field in tagged:
            value = field.get(entity)
            if value == field.default:
                continue
            encoded = bytearray()
            field.write(encoded, value)
            parts += uvarint(field.tag)
            parts += uvarint(len(encoded))
            parts += encoded
            count += 1
        out += uvarint(count)
        out += parts

    return write
