"""Requests and responses: frames in, kio's classes out, and back.

Callers see one class for each message, that of its latest version (`versions.class_version` says which), whatever
version is on the wire. Produce requests, Fetch requests and their responses have modules of their own, for speed.
"""

from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.static.primitive import i32Timedelta
from kio.static.protocol import RequestPayload, ResponsePayload

from .apis import APIS, ApiKey, request_header_version, response_header_version
from .decoding import EntityReader, entity_reader
from .encoding import entity_writer
from .errors import CorruptData, ErrorCode
from .own_apis import OWN_VERSION, OwnApiKey
from .primitives import GARBAGE_ERRORS, Buffer, Writer, read_tags
from .versions import class_version

Request: TypeAlias = RequestPayload
Response: TypeAlias = ResponsePayload

NO_THROTTLE: Final = i32Timedelta.parse(timedelta(0))
"""`throttle_time_ms` of every response: there are no quotas."""

_HEADER = Struct(">hhih")
_REQUEST_START = Struct(">ihhih")
_RESPONSE_START = Struct(">ii")
_SIZE = Struct(">i")
NO_HEADER_TAGS: Final = b"\0"
"""The tagged fields of a header that has none."""
# Of every API and version that Kafka 4.3.1 serves, and of ours; one look for each request.
_IS_FLEXIBLE: Final = {
    (int(api.key), version): api.is_flexible(version)
    for api in APIS.values()
    for version in range(api.min_version, api.max_version + 1)
} | {(int(key), OWN_VERSION): True for key in OwnApiKey}
# librdkafka (2.16 at least) asks for all topics with a null array of one byte and the other three of an array's size in
# older versions: the flags are read from those, which does no harm, and what follows is left over. In changes of
# SCRAM credentials it writes the empty tags of the request twice. Apache Kafka never looks at what is left over.
_SLACK_BYTES: Final[Mapping[int, int]] = {ApiKey.METADATA: 3, ApiKey.ALTER_USER_SCRAM_CREDENTIALS: 1}


class RequestHeader(NamedTuple):
    """What stands before a request's body, which begins at `body_offset` of the same buffer."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_offset: int


def decode_header(buffer: Buffer, offset: int = 0) -> RequestHeader:
    """The header at `offset` of a frame without its size.

    CorruptData when the API does not exist or the version is not one that Kafka 4.3.1 serves. Only ApiVersions may come
    in any version, with a body that is not to be read: the answer is UNSUPPORTED_VERSION in version 0 (KIP-511).
    """
    try:
        api_key, version, correlation_id, client_id_size = _HEADER.unpack_from(buffer, offset)
        position = offset + _HEADER.size
        client_id = None
        if client_id_size >= 0:
            end = position + client_id_size
            if end > len(buffer):
                raise CorruptData(f"a client id of {client_id_size} bytes is longer than its frame")
            # It is only ever shown, so what is no text does no harm.
            client_id = str(buffer[position:end], "utf-8", "replace")
            position = end
        is_flexible = _IS_FLEXIBLE.get((api_key, version))
        if is_flexible is None:
            if api_key == ApiKey.API_VERSIONS:
                return RequestHeader(api_key, version, correlation_id, client_id, len(buffer))
            raise CorruptData(_why_not_served(api_key, version, correlation_id))
        if is_flexible:
            position = position + 1 if buffer[position] == 0 else read_tags(buffer, position)[1]
    except GARBAGE_ERRORS as error:
        raise CorruptData(f"a request header could not be read: {error}") from None
    return RequestHeader(api_key, version, correlation_id, client_id, position)


def read_request_tags(buffer: Buffer) -> Mapping[int, Buffer]:
    """Return the tagged fields in the header of a frame without its size, whose header was decoded already."""
    api_key, version, _, client_id_size = _HEADER.unpack_from(buffer, 0)
    if not _IS_FLEXIBLE.get((api_key, version)):
        return {}
    return read_tags(buffer, _HEADER.size + max(client_id_size, 0))[0]


def _why_not_served(api_key: int, version: int, correlation_id: int) -> str:
    api = APIS.get(api_key)
    if api is None:
        return f"there is no API {api_key} (version {version}, correlation id {correlation_id})"
    return f"{api.name} came in version {version}; {api.min_version} to {api.max_version} are served"


def decode_request(
    api_key: int, version: int, buffer: Buffer, offset: int, target: type[Request] | None = None
) -> Request:
    """The body from `offset` to the end of `buffer`. CorruptData when it is not exactly one such request.

    `target` is a class with more fields than the one that stands for `version`.
    """
    what = f"{APIS[api_key].name} request v{version}"
    slack = _SLACK_BYTES.get(api_key, 0)
    return _whole(_request_reader(api_key, version, target), buffer, offset, what, slack)  # type: ignore[return-value]


def encode_response(
    api_key: int, version: int, correlation_id: int, response: Response, header_tags: bytes = NO_HEADER_TAGS
) -> bytes:
    """The whole frame with its size. `response` is of the class that stands for `version`."""
    out = bytearray(_RESPONSE_START.pack(0, correlation_id))
    if response_header_version(api_key, version) == 1:
        out += header_tags
    _response_writer(api_key, version, type(response))(out, response)
    _SIZE.pack_into(out, 0, len(out) - _SIZE.size)
    return bytes(out)


def with_correlation_id(frame: bytes, correlation_id: int) -> bytes:
    """The frame of a response that was encoded for another request, for this one."""
    rest = memoryview(frame)[_RESPONSE_START.size :]
    return b"".join((frame[: _SIZE.size], _SIZE.pack(correlation_id), rest))


def encode_request(
    api_key: int,
    version: int,
    correlation_id: int,
    client_id: str | None,
    request: Request,
    header_tags: bytes = NO_HEADER_TAGS,
) -> bytes:
    """The whole frame with its size, as a client sends it; headers that have no tagged fields are without them."""
    name = b"" if client_id is None else client_id.encode()
    out = bytearray(
        _REQUEST_START.pack(0, api_key, version, correlation_id, -1 if client_id is None else len(name)) + name
    )
    if request_header_version(api_key, version) == 2:
        out += header_tags
    _request_writer(api_key, version, type(request))(out, request)
    _SIZE.pack_into(out, 0, len(out) - _SIZE.size)
    return bytes(out)


def decode_response(api_key: int, version: int, buffer: Buffer, offset: int = 0) -> tuple[int, Response]:
    """(correlation id, response) from a frame without its size. CorruptData when it is not exactly one response."""
    what = f"{APIS[api_key].name} response v{version}"
    if len(buffer) < offset + _SIZE.size:
        raise CorruptData(f"{what}: no correlation id in {len(buffer) - offset} bytes")
    (correlation_id,) = _SIZE.unpack_from(buffer, offset)
    position = offset + _SIZE.size
    if response_header_version(api_key, version) == 1:
        try:
            _, position = read_tags(buffer, position)
        except GARBAGE_ERRORS as error:
            raise CorruptData(f"{what}: its header could not be read: {error}") from None
    return correlation_id, _whole(_response_reader(api_key, version), buffer, position, what)  # type: ignore[return-value]


def read_response_tags(api_key: int, version: int, buffer: Buffer) -> Mapping[int, Buffer]:
    """Return the tagged fields in the header of a frame without its size; none in versions whose header has none.

    Raises CorruptData.
    """
    if response_header_version(api_key, version) == 0:
        return {}
    try:
        return read_tags(buffer, _SIZE.size)[0]
    except GARBAGE_ERRORS as error:
        raise CorruptData(f"the header of a response could not be read: {error}") from None


def kio_error(code: ErrorCode) -> KioErrorCode:
    """The code as kio's classes want it."""
    return KioErrorCode(int(code))


def _whole(read: EntityReader, buffer: Buffer, offset: int, what: str, slack: int = 0) -> object:
    try:
        entity, position = read(buffer, offset)
    except CorruptData as error:
        raise CorruptData(f"{what}: {error}") from None
    except GARBAGE_ERRORS as error:
        raise CorruptData(f"{what} could not be read: {error}") from None
    if len(buffer) - position not in (0, slack):
        raise CorruptData(f"{what} is followed by {len(buffer) - position} bytes too many")
    return entity


@cache
def _request_reader(api_key: int, version: int, target: type[Request] | None) -> EntityReader:
    standing = load_request_schema(api_key, class_version(api_key, version))
    return entity_reader(load_request_schema(api_key, version), target or standing, is_of_client=True)


@cache
def _response_reader(api_key: int, version: int) -> EntityReader:
    target = load_response_schema(api_key, class_version(api_key, version))
    return entity_reader(load_response_schema(api_key, version), target)


@cache
def _request_writer(api_key: int, version: int, source: type[Request]) -> Writer:
    return entity_writer(load_request_schema(api_key, version), source)


@cache
def _response_writer(api_key: int, version: int, source: type[Response]) -> Writer:
    return entity_writer(load_response_schema(api_key, version), source)
