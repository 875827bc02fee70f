"""The throttle time in encoded responses is where decoders look for it, in every API and version that has it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any, Final

import pytest
from kio.index import load_response_schema
from kio.static.primitive import i32Timedelta
from random_entities import random_entity

from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.messages import decode_response, encode_response
from penstock.protocol.schemas import fields_of
from penstock.protocol.throttle_time import with_throttle_time

ELSEWHERE: Final = {
    # By encoders of their own.
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    # Behind fields of any length.
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
}


@pytest.mark.parametrize("api", [api for api in APIS.values() if api.key not in ELSEWHERE], ids=lambda api: api.name)
def test_the_written_time_is_read(api: Any) -> None:
    source = Random(api.key)
    for version in range(api.min_version, api.max_version + 1):
        schema = load_response_schema(api.key, version)
        response: Any = random_entity(schema, source)
        has_time = any(field.name == "throttle_time" for field in fields_of(schema))
        if has_time:
            response = replace(response, throttle_time=i32Timedelta.parse(timedelta(milliseconds=7)))
        frame = encode_response(api.key, version, 5, response)
        written = with_throttle_time(api.key, version, frame, 1234)
        correlation_id, read = decode_response(api.key, version, memoryview(written)[4:])
        before: Any = decode_response(api.key, version, memoryview(frame)[4:])[1]
        assert correlation_id == 5
        if has_time:
            assert read == replace(before, throttle_time=timedelta(milliseconds=1234))
        else:
            assert written == frame
            assert read == before
