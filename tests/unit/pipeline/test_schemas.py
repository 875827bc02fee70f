"""The schema of a table grows by columns and fields, and a column keeps its type."""

import json
from typing import Any

import pytest

from penstock.pipeline.tables.schemas import SchemaError, merged


def struct(**fields: Any) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields.items()],
    }


def test_columns_and_nested_fields_are_added_at_the_end() -> None:
    old = struct(a="long", value=struct(x="string"))
    new = struct(value=struct(y="long", x="string"), b="date", a="long")
    result = json.loads(merged(json.dumps(old), json.dumps(new)))
    assert result == struct(a="long", value=struct(x="string", y="long"), b="date")


def test_columns_that_rows_no_longer_have_stay() -> None:
    old = struct(a="long", b="long")
    assert json.loads(merged(json.dumps(old), json.dumps(struct(a="long")))) == old


def test_a_column_of_another_type_is_named() -> None:
    old, new = struct(value=struct(x="string")), struct(value=struct(x="long"))
    with pytest.raises(SchemaError, match=r"value\.x is string in the table and long in the rows"):
        merged(json.dumps(old), json.dumps(new))


@pytest.mark.parametrize("kind", ["array", "map"])
def test_elements_keep_their_types_too(kind: str) -> None:
    def column(element: Any) -> dict[str, Any]:
        if kind == "array":
            return struct(c={"type": "array", "elementType": element, "containsNull": True})
        return struct(c={"type": "map", "keyType": "string", "valueType": element, "valueContainsNull": True})

    old = json.dumps(column(struct(x="long")))
    grown = json.loads(merged(old, json.dumps(column(struct(x="long", y="date")))))
    assert grown == column(struct(x="long", y="date"))
    with pytest.raises(SchemaError):
        merged(old, json.dumps(column("long")))


def test_every_column_of_a_table_may_be_null() -> None:
    new = {"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": False, "metadata": {"k": 1}}]}
    assert json.loads(merged(None, json.dumps(new))) == struct(a="long")
