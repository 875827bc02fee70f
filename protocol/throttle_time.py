"""`throttle_time_ms` in the frame of an encoded response (KIP-219).

Whether a client is throttled is known when its response is: the field is written into the frame, so that neither
handlers nor what they keep encoded have to know. Produce and Fetch have encoders that take the time instead.
"""

from functools import cache
from struct import Struct
from typing import Final

from kio.index import load_response_schema

from .apis import APIS, ApiKey, response_header_version
from .primitives import read_uvarint
from .schemas import fields_of

_INT: Final = Struct(">i")
_START_BYTES: Final = 8
"""The frame's size and the correlation id."""
_ERROR_CODE_BYTES: Final = 2
_RANGE_BYTES: Final = 6
_FIRST_FLEXIBLE_API_VERSIONS: Final = 3


def with_throttle_time(api_key: int, version: int, frame: bytes, throttle_time_ms: int) -> bytes:
    """The frame with that time; unchanged where it has no field for it, or has it behind fields of other sizes."""
    position = _position_in(api_key, version, frame)
    if position is None:
        return frame
    return b"".join((frame[:position], _INT.pack(throttle_time_ms), frame[position + _INT.size :]))


def _position_in(api_key: int, version: int, frame: bytes) -> int | None:
    if api_key != ApiKey.API_VERSIONS:
        return _position(api_key, version)
    # Behind the APIs, of which all take as many bytes: key, first and last version.
    start = _START_BYTES + _ERROR_CODE_BYTES
    if _FIRST_FLEXIBLE_API_VERSIONS <= version <= APIS[api_key].max_version:
        count, position = read_uvarint(frame, start)
        return position + (count - 1) * (_RANGE_BYTES + 1)
    if 1 <= version < _FIRST_FLEXIBLE_API_VERSIONS:
        (count,) = _INT.unpack_from(frame, start)
        return start + _INT.size + int(count) * _RANGE_BYTES
    return None


@cache
def _position(api_key: int, version: int) -> int | None:
    api = APIS.get(api_key)
    if api is None or not api.has_version(version):
        return None
    # The headers of responses to clients have no tagged fields: one byte says so.
    position = _START_BYTES + response_header_version(api_key, version)
    for field in fields_of(load_response_schema(api_key, version)):
        if field.name == "throttle_time":
            return position
        if field.name != "error_code":
            return None
        position += _ERROR_CODE_BYTES
    return None
