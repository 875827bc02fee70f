"""Answers that do not fit Confluent's document are found."""

from __future__ import annotations

from typing import Any

from conformance.confluent_openapi import Document

RESPONSES: dict[str, Any] = {
    "200": {"$ref": "#/components/responses/Thing"},
    "204": {"description": "Done."},
    "5XX": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
}
DOCUMENT = Document(
    {
        "paths": {"/things": {"get": {"responses": RESPONSES}}, "/written": {"post": {"responses": RESPONSES}}},
        "components": {
            "responses": {
                "Thing": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}}
            },
            "schemas": {
                "Error": {"type": "object", "required": ["error_code"]},
                "Base": {"type": "object", "required": ["kind"], "properties": {"kind": {"type": "string"}}},
                "Thing": {
                    "allOf": [
                        {"$ref": "#/components/schemas/Base"},
                        {
                            "type": "object",
                            "required": ["offset"],
                            "properties": {
                                "offset": {"type": "int64", "example": 5},
                                "rack": {"type": "string", "nullable": True},
                                "description": {"type": "string"},
                            },
                        },
                    ]
                },
            },
        },
    }
)


def complaints(status: int, answer: object) -> list[str]:
    return DOCUMENT.complaints("GET", "/things", status, answer)


def test_what_can_be_read_is_listed() -> None:
    assert list(DOCUMENT.paths()) == ["/things"]


def test_an_answer_that_fits_is_no_complaint() -> None:
    assert complaints(200, {"kind": "K", "offset": 1, "rack": None, "description": "d", "more": []}) == []
    assert complaints(204, None) == []
    assert complaints(503, {"error_code": 50003}) == []


def test_what_is_missing_or_of_another_type_is_named() -> None:
    assert complaints(200, {"offset": 1}) == ["$: 'kind' is a required property"]
    assert complaints(200, {"kind": "K", "offset": None}) == ["$.offset: None is not of type 'integer'"]
    assert complaints(200, {"kind": "K", "offset": 1, "description": 5}) == ["$.description: 5 is not of type 'string'"]
    assert len(complaints(200, {"kind": "K", "offset": 1, "rack": 5})) == 1
    assert complaints(500, {}) == ["$: 'error_code' is a required property"]


def test_a_status_or_a_body_that_is_not_described_is_a_complaint() -> None:
    assert complaints(404, {}) == ["the document has no status 404 there"]
    assert complaints(204, {}) == ["the document has no body there"]
