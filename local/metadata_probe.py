"""The one question that readiness needs, Metadata version 1 without topics, in bytes.

Every client library costs more to import than a node takes to start, and a cluster is waited for with each test.

    request    size i32 | api key 3 i16 | version 1 i16 | correlation id i32 | client id i16 length, text | topics i32 0
    response   size i32 | correlation id i32 | brokers i32 count, of
               (node id i32 | host i16 length, text | port i32 | rack i16 length or -1, text) | … not read further
"""

import struct
from typing import Final

_CLIENT_ID: Final = b"penstock-cluster"
_METADATA: Final = 3
_VERSION: Final = 1
_BODY: Final = struct.pack(f">hhih{len(_CLIENT_ID)}si", _METADATA, _VERSION, 0, len(_CLIENT_ID), _CLIENT_ID, 0)
REQUEST: Final = struct.pack(">i", len(_BODY)) + _BODY
# Brokers of a local cluster; a larger announcement is not of a Kafka broker.
MAX_RESPONSE_SIZE: Final = 1024 * 1024
SIZE: Final = struct.Struct(">i")

_COUNT = struct.Struct(">ii")
_ID = struct.Struct(">i")
_LENGTH = struct.Struct(">h")
_PORT_SIZE = 4


def broker_ids(response: bytes) -> frozenset[int]:
    """The live brokers in a response, given without its size. Raises ValueError when it is not one."""
    try:
        correlation_id, count = _COUNT.unpack_from(response, 0)
        if correlation_id != 0 or count < 0:
            raise ValueError(f"correlation id {correlation_id} and {count} brokers")
        position = _COUNT.size
        ids = set()
        for _ in range(count):
            (node_id,) = _ID.unpack_from(response, position)
            position = _after_text(response, position + _ID.size) + _PORT_SIZE
            position = _after_text(response, position)
            ids.add(node_id)
    except struct.error as error:
        raise ValueError(f"{len(response)} bytes end too early") from error
    return frozenset(ids)


def _after_text(response: bytes, position: int) -> int:
    (length,) = _LENGTH.unpack_from(response, position)
    return position + _LENGTH.size + max(int(length), 0)
