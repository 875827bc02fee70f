"""Where the schema of an id comes from: a registry, or files that the driver read."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from .errors import BadRecordError, FormatError
from .registry import Registry, StoredSchema, registry_of
from .value_format import ValueFormat

_MAX_FILES: Final = 1_000
"""They go to each executor with the task."""
_SUFFIXES: Final = {"avro": ".avsc", "protobuf": ".desc"}


class SchemaSource(Protocol):
    def by_id(self, schema_id: int) -> StoredSchema:
        """Raises BadRecordError when there is no such id."""
        ...


@dataclass(frozen=True, slots=True)
class RegistrySource:
    registry: Registry

    def by_id(self, schema_id: int) -> StoredSchema:
        found = self.registry.by_id(schema_id)
        if found is None:
            raise BadRecordError(f"the schema registry has no schema of id {schema_id}")
        return found


@dataclass(frozen=True, slots=True)
class FolderSource:
    schemas: Mapping[int, StoredSchema]

    def by_id(self, schema_id: int) -> StoredSchema:
        found = self.schemas.get(schema_id)
        if found is None:
            raise BadRecordError(f"the folder of schemas has none of id {schema_id}")
        return found

    @property
    def newest(self) -> StoredSchema:
        return self.schemas[max(self.schemas)]


def schema_source(value: ValueFormat) -> RegistrySource | FolderSource | None:
    """None for values that bring no id. Raises FormatError when a folder has no schema that can be used."""
    if not value.wire_format or value.format not in _SUFFIXES:
        return None
    if value.registry:
        return RegistrySource(registry_of(value.registry))
    return _folder_source(Path(value.schemas), value.format)


def _folder_source(folder: Path, format_name: str) -> FolderSource:
    suffix = _SUFFIXES[format_name]
    schemas: dict[int, StoredSchema] = {}
    for path in sorted(folder.glob(f"*{suffix}")):
        if not path.stem.isascii() or not path.stem.isdigit():
            raise FormatError(f"{path} is named by no schema id: a name is like 12{suffix}")
        schemas[int(path.stem)] = stored_file(path)
    if not schemas:
        raise FormatError(f"{folder} has no schema (12{suffix} would be the one of id 12)")
    if len(schemas) > _MAX_FILES:
        raise FormatError(f"{folder} has {len(schemas)} schemas, and {_MAX_FILES} can be")
    return FolderSource(schemas)


def stored_file(path: Path) -> StoredSchema:
    """Of Protobuf a descriptor set, so that a file brings what it imports. Raises FormatError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(f"the schema {path} cannot be read: {error.strerror}") from error
    if path.suffix == ".avsc":
        return StoredSchema(schema=data.decode(), schemaType="AVRO")
    return StoredSchema(schema=base64.b64encode(data).decode(), schemaType=DESCRIPTOR_SET)


DESCRIPTOR_SET: Final = "DESCRIPTOR_SET"
