"""The OpenAPI 3.1 document, from the table of operations: what is served is what is described."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ....protocol.rest.problem import MEDIA_TYPE, ConfluentError, Problem
from ..operation import JSON, Operation
from ..path_parameters import PATH_PARAMETERS, names_in
from . import confluent_clients

_REFERENCE: Final = "#/components/schemas/{name}"
_TYPES: Final = {int: "integer", str: "string"}
_INT32: Final = {"minimum": 0, "maximum": 2**31 - 1}


def openapi_document(operations: Sequence[Operation], *, version: str) -> dict[str, Any]:
    """Return the document as JSON values."""
    types = _types(operations)
    schemas, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    schema_of = dict(zip(map(_key, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schema_of, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Penstock",
            "version": version,
            "summary": "Administration of a Penstock cluster by HTTP.",
            "description": (
                "Every node serves it; what changes the metadata reaches the active controller. `/v3` has the paths "
                "and bodies of Confluent's REST API, and so has `/kafka/v3`; `/v1` has what is Penstock's own."
            ),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(operation.tag for operation in operations)],
        "paths": paths,
        "components": {"schemas": dict(sorted(components.items()))},
    }


def _types(operations: Sequence[Operation]) -> list[Any]:
    found: dict[str, Any] = {_key(one): one for one in (Problem, ConfluentError)}
    for operation in operations:
        for one in (operation.query, operation.body, operation.answer, *operation.other_statuses.values()):
            if one is not None:
                found.setdefault(_key(one), one)
    return list(found.values())


def _key(one: Any) -> str:
    return repr(one)


def _operation(operation: Operation, schema_of: Mapping[str, Any], components: Mapping[str, Any]) -> dict[str, Any]:
    parameters = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": PATH_PARAMETERS[name].description,
            "schema": {"type": "integer", **_INT32}
            if PATH_PARAMETERS[name].type is int
            else {"type": "string", "minLength": 1},
        }
        for name in names_in(operation.path)
    ]
    if operation.query is not None:
        parameters += _query_parameters(schema_of[_key(operation.query)], components)
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag],
        "parameters": parameters,
        "responses": _responses(operation, schema_of),
    }
    if operation.description:
        described["description"] = operation.description
    if operation.body is not None:
        described["requestBody"] = {
            "required": not operation.is_body_optional,
            "content": {JSON: {"schema": schema_of[_key(operation.body)]}},
        }
    return described


def _query_parameters(schema: Mapping[str, Any], components: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = components[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return [
        {
            "name": name,
            "in": "query",
            "required": name in found.get("required", ()),
            "schema": {key: value for key, value in of.items() if key != "description"},
            **({"description": of["description"]} if "description" in of else {}),
        }
        for name, of in found["properties"].items()
    ]


def _responses(operation: Operation, schema_of: Mapping[str, Any]) -> dict[str, Any]:
    usual: dict[str, Any] = {"description": "Done."}
    if operation.answer is not None:
        usual["content"] = {operation.media_type: {"schema": schema_of[_key(operation.answer)]}}
    elif operation.media_type != JSON:
        usual["content"] = {operation.media_type: {"schema": {"type": "string"}}}
    problems = {MEDIA_TYPE: {"schema": schema_of[_key(Problem)]}}
    if operation.path.startswith(confluent_clients.ROOT):
        problems[JSON] = {"schema": schema_of[_key(ConfluentError)]}
    problem = {"description": "A problem.", "content": problems}
    others = {
        str(status): {"description": "Not well.", "content": {JSON: {"schema": schema_of[_key(answer)]}}}
        for status, answer in operation.other_statuses.items()
    }
    return {str(operation.status): usual, **others, "default": problem}
