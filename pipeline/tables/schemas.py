"""How the schema of a table grows: columns and fields are added, none changes its type. Pure, over Spark's JSON."""

from __future__ import annotations

from typing import Any

import msgspec


class SchemaError(Exception):
    """Rows do not fit into the table that they are meant for."""


def merged(old: str | None, new: str) -> str:
    """The columns of both, those of the table first. Raises SchemaError, which names the column that does not fit."""
    added = msgspec.json.decode(new)
    result = added if old is None else _merged_type(msgspec.json.decode(old), added, "")
    return msgspec.json.encode(_nullable(result)).decode()


def _merged_type(old: Any, new: Any, path: str) -> Any:
    if isinstance(old, dict) and isinstance(new, dict) and old.get("type") == new.get("type"):
        match old["type"]:
            case "struct":
                return {"type": "struct", "fields": _merged_fields(old["fields"], new["fields"], path)}
            case "array":
                return {**old, "elementType": _merged_type(old["elementType"], new["elementType"], f"{path}[]")}
            case "map":
                key = _merged_type(old["keyType"], new["keyType"], f"{path}{{key}}")
                return {**old, "keyType": key, "valueType": _merged_type(old["valueType"], new["valueType"], path)}
    if old != new:
        raise SchemaError(
            f"column {path} is {_shown(old)} in the table and {_shown(new)} in the rows: a column keeps its type;"
            " write to another table, or give the column another name"
        )
    return old


def _merged_fields(old: list[dict[str, Any]], new: list[dict[str, Any]], path: str) -> list[dict[str, Any]]:
    incoming = {one["name"]: one for one in new}
    fields = []
    for one in old:
        other = incoming.pop(one["name"], None)
        inner = f"{path}.{one['name']}" if path else one["name"]
        fields.append(one if other is None else {**one, "type": _merged_type(one["type"], other["type"], inner)})
    return [*fields, *incoming.values()]


def _nullable(value: Any) -> Any:
    """Every column and element may be null: files of before a column was added have none of it."""
    if isinstance(value, list):
        return [_nullable(one) for one in value]
    if not isinstance(value, dict):
        return value
    flags = {"nullable", "containsNull", "valueContainsNull"}
    return {key: True if key in flags else _nullable(one) for key, one in value.items() if key != "metadata"} | (
        {"metadata": {}} if "nullable" in value else {}
    )


def _shown(kind: Any) -> str:
    return kind if isinstance(kind, str) else str(kind.get("type"))
