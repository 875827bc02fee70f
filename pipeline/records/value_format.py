"""How the values of a topic are encoded: the settings, and what of them contradicts itself."""

from typing import Final, Literal

import msgspec

from .errors import FormatError

Format = Literal["raw", "json", "avro", "protobuf"]

_REGISTRY_KEYS: Final = frozenset({"url", "basic.auth.user.info", "ssl.ca.location"})


class ValueFormat(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`schema` is the reader's: for JSON Spark's DDL or a `.json` file of Spark's, for Avro an `.avsc` file, for
    Protobuf a descriptor set (`protoc --include_imports --descriptor_set_out`). Files are read where the driver runs.

    With `wire_format` values start as those of schema registries do: a zero byte, the schema's id in four bytes, and
    for Protobuf the indexes of the message. The schema of an id is asked of `registry` (`url`, `basic.auth.user.info`,
    `ssl.ca.location`), or is a file of the folder `schemas` named by it (`12.avsc`, `12.desc`). Without `schema` the
    reader's is the newest of `subject` in the registry, or the one of the highest id in the folder.
    """

    format: Format = "raw"
    schema: str = ""
    message: str = ""
    wire_format: bool = False
    registry: dict[str, str] = {}
    schemas: str = ""
    subject: str = ""

    def __post_init__(self) -> None:
        check(self)

    def __repr__(self) -> str:
        """The registry's properties are left out: a password is among them."""
        names = (name for name in self.__struct_fields__ if name != "registry" and getattr(self, name))
        return f"ValueFormat({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def check(value: ValueFormat) -> None:
    """Raises FormatError with a sentence for the first setting that does not fit the others."""
    unknown = sorted(value.registry.keys() - _REGISTRY_KEYS)
    if unknown:
        raise FormatError(f"registry has {unknown[0]!r}, and only {', '.join(sorted(_REGISTRY_KEYS))} are known")
    if value.registry and "url" not in value.registry:
        raise FormatError("registry needs a url")
    if value.format == "raw":
        _refuse(value, "schema", "message", "wire_format", "registry", "schemas", "subject")
        return
    if value.format == "json":
        _refuse(value, "message", "registry", "schemas", "subject")
        if not value.schema:
            raise FormatError("format json needs a schema: Spark's DDL ('id BIGINT, city STRING') or a .json file")
        return
    if value.format == "avro":
        _refuse(value, "message")
    if not value.wire_format:
        _refuse(value, "registry", "schemas", "subject")
        if not value.schema:
            raise FormatError(f"format {value.format} without wire_format needs a schema")
    elif bool(value.registry) == bool(value.schemas):
        raise FormatError("wire_format needs either a registry (registry.url) or a folder of schemas")
    if value.subject and not value.registry:
        raise FormatError("subject is a registry's, so it needs one (registry.url)")
    if value.subject and value.schema:
        raise FormatError("the reader's schema is either schema or the newest of subject")


def _refuse(value: ValueFormat, *names: str) -> None:
    for name in names:
        if getattr(value, name):
            before = "" if value.format in ("raw", "json") or value.wire_format else " without wire_format"
            raise FormatError(f"{name} means nothing to format {value.format}{before}")
