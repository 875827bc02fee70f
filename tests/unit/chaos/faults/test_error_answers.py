"""The answer of a refused request, in every version: one such response, with the error for each partition."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio_bytes import written_by_kio
from random_entities import random_entity

from penstock.broker.network.handlers import Handlers
from penstock.broker.network.request import Request, RequestContext
from penstock.chaos.faults.error_answers import error_answer
from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.errors import CorruptData, ErrorCode
from penstock.protocol.messages import decode_response

READ_BY_HAND = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.OFFSET_COMMIT, ApiKey.METADATA, ApiKey.LIST_OFFSETS)
CODE = ErrorCode.NOT_LEADER_OR_FOLLOWER
CONTEXT = RequestContext(listener_name="PLAINTEXT", peer_host="10.0.0.1", client_id="me")


def request_of(key: ApiKey, version: int, body: bytes) -> Request:
    owner: Any = None
    return Request(owner, key, version, 7, CONTEXT, memoryview(body), 0)


def answered(key: ApiKey, version: int, body: bytes) -> object:
    answer = error_answer(Handlers(), request_of(key, version, body), CODE)
    assert answer is not None
    frame = answer if isinstance(answer, bytes) else b"".join(part for part in answer if isinstance(part, bytes))
    correlation_id, response = decode_response(key, version, frame[4:])
    assert correlation_id == 7
    return response


def errors_in(value: Any) -> Iterator[ErrorCode]:
    if isinstance(value, KioErrorCode):
        yield ErrorCode(int(value))
    elif isinstance(value, tuple):
        for item in value:
            yield from errors_in(item)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from errors_in(getattr(value, field.name))


@pytest.mark.thorough
@pytest.mark.parametrize("key", READ_BY_HAND, ids=lambda key: key.name)
def test_every_version_has_the_error_in_its_own_response(key: ApiKey) -> None:
    api = APIS[key]
    source = random.Random(4)
    for version in range(api.min_version, api.max_version + 1):
        found: set[ErrorCode] = set()
        for _ in range(60):
            message = random_entity(load_request_schema(key, version), source)
            if key == ApiKey.PRODUCE and message.acks == 0:
                continue
            try:
                found.update(errors_in(answered(key, version, written_by_kio(message))))
            except CorruptData:
                # A random one may say what no request may.
                continue
        assert CODE in found, version
        assert found <= {CODE, ErrorCode.NONE}, version


def test_what_has_no_place_for_an_error_is_none() -> None:
    source = random.Random(4)
    schema = load_request_schema(ApiKey.PRODUCE, 9)
    unanswered = dataclasses.replace(random_entity(schema, source), acks=0)
    assert error_answer(Handlers(), request_of(ApiKey.PRODUCE, 9, written_by_kio(unanswered)), CODE) is None
    assert error_answer(Handlers(), request_of(ApiKey.API_VERSIONS, 3, b""), CODE) is None
