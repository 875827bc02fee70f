"""Error responses for APIs that Apache Kafka 4.3.1 serves and this node does not.

ApiVersions does not list these APIs, but some clients use them without a check, and a closed connection has no reason
for them. Apache Kafka also answers UNSUPPORTED_VERSION if a feature is off (`share.version`, `streams.version` and
`kraft.version` 0), and refuses delegation tokens to unauthenticated clients.

The error is at the top level of the response if the schema has one there, else in each item of the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from kio.index import load_response_schema
from kio.static.protocol import Entity, ResponsePayload

from ...protocol.apis import APIS, ApiKey
from ...protocol.errors import ErrorCode, error_info
from ...protocol.messages import decode_request, encode_response, kio_error
from ...protocol.schemas import FieldSchema, fields_of
from ..network.handlers import Handlers, Message
from ..network.request import Request

Items: TypeAlias = Iterable[Mapping[str, Any]]

TOKEN_APIS: Final = frozenset(
    {
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    }
)
_ERROR_CODE: Final = "error_code"
_ERROR_MESSAGE: Final = "error_message"


def register(handlers: Handlers, *, is_controller: bool = False) -> None:
    """Registers every API of the listener that has no handler yet; called last. APIs of controllers alone, which only
    nodes use, are left out: their requests close the connection."""
    built = frozenset(api.key for api in handlers.built)
    for key, api in APIS.items():
        if key not in built and api.on_broker and (api.on_controller or not is_controller):
            handlers.add(api.key, _begin, is_built=False)


def _begin(request: Request) -> None:
    """Raises CorruptData."""
    api_key = ApiKey(request.api_key)
    message = decode_request(api_key, request.api_version, request.body, request.body_offset)
    request.respond(encode_response(api_key, request.api_version, request.correlation_id, refusal(api_key, message)))


def refusal(api_key: ApiKey, request: Message) -> ResponsePayload:
    """Returns the error response, an object of the latest version's class."""
    is_of_tokens = api_key in TOKEN_APIS
    error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED if is_of_tokens else ErrorCode.UNSUPPORTED_VERSION
    response = load_response_schema(api_key, APIS[api_key].max_version)
    named = _ITEMS.get(api_key)
    return _answer(response, {} if named is None else {named[0]: named[1](request)}, error)  # type: ignore[return-value]


def _answer(entity: type[Entity], said: Mapping[str, Any], error: ErrorCode) -> Entity:
    """Returns an entity with the error, the fields that the request `said`, and neutral values for the others."""
    has_error = _has_error(entity)

    def value_of(field: FieldSchema) -> object:
        if field.name == _ERROR_CODE:
            return kio_error(error)
        if field.name == _ERROR_MESSAGE:
            return error_info(error).sentence
        if field.name not in said:
            return field.neutral
        value = said[field.name]
        item = field.entity
        if item is None:
            return value
        # A top-level error covers the items.
        is_part = has_error and any(_has_error(one) for one in _entities(item))
        return () if is_part else tuple(_answer(item, one, error) for one in _as_mappings(value))

    return entity(**{field.name: value_of(field) for field in fields_of(entity)})


def _has_error(entity: type[Entity]) -> bool:
    return any(field.name == _ERROR_CODE for field in fields_of(entity))


def _entities(entity: type[Entity]) -> Iterable[type[Entity]]:
    """Yields the entity and all entities nested in it."""
    yield entity
    for field in fields_of(entity):
        if field.entity is not None:
            yield from _entities(field.entity)


def _as_mappings(items: Iterable[Entity | Mapping[str, Any]] | None) -> Items:
    for item in items or ():
        if isinstance(item, Mapping):
            yield item
        else:
            yield {field.name: getattr(item, field.name) for field in fields_of(type(item))}


def _by_group_id(request: Message) -> Items:
    return [{"group_id": group_id} for group_id in request.group_ids]


def _by_user(request: Message) -> Items:
    users = {change.name for changes in (request.deletions, request.upsertions) for change in changes}
    return [{"user": user} for user in sorted(users)]


def _by_topic(request: Message) -> Items:
    return _as_mappings(request.topics)


_ITEMS: Final[Mapping[ApiKey, tuple[str, Callable[[Message], Items]]]] = {
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ("results", _by_user),
    ApiKey.SHARE_GROUP_DESCRIBE: ("groups", _by_group_id),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: ("results", _by_topic),
    ApiKey.READ_SHARE_GROUP_STATE: ("results", _by_topic),
    ApiKey.WRITE_SHARE_GROUP_STATE: ("results", _by_topic),
    ApiKey.DELETE_SHARE_GROUP_STATE: ("results", _by_topic),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: ("results", _by_topic),
    ApiKey.STREAMS_GROUP_DESCRIBE: ("groups", _by_group_id),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: ("groups", lambda request: _as_mappings(request.groups)),
}
"""Responses with the error in items: the field of the items, and each item's fields from the request."""
