"""How a connection ends: APIs and versions that no broker serves, requests that cannot be read, bytes left over."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from differential.script import Run, case
from kio.index import load_request_schema
from kio.static.protocol import Entity

from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.schemas import fields_of

HEADER = struct.Struct(">hhih")
SERVED = (
    *(ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.API_VERSIONS),
    *(ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.DELETE_RECORDS, ApiKey.INIT_PRODUCER_ID),
    *(ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CONFIGS, ApiKey.DESCRIBE_LOG_DIRS),
    *(ApiKey.CREATE_PARTITIONS, ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.DESCRIBE_CLUSTER),
    *(ApiKey.DESCRIBE_PRODUCERS, ApiKey.LIST_CONFIG_RESOURCES, ApiKey.DESCRIBE_TOPIC_PARTITIONS),
)
BODY = bytes(40)


@case(ApiKey.API_VERSIONS, versions=(0,))
def connections_that_end(run: Run) -> None:
    for key in SERVED:
        api = APIS[key]
        for version in {-1, 0, api.min_version - 1, api.max_version + 1, 32767} - set(
            range(api.min_version, api.max_version + 1)
        ):
            run.send(f"{api.name} v{version}", HEADER.pack(key, version, 1, -1) + BODY)
    for key_number in (-1, 4, 5, 6, 7, 93, 999, 32767):
        run.send(f"API {key_number}", HEADER.pack(key_number, 0, 1, -1) + BODY)
    for key in ApiKey:
        if APIS[key].on_controller and not APIS[key].on_broker:
            run.send(f"{APIS[key].name}, for controllers", HEADER.pack(key, APIS[key].min_version, 1, -1) + BODY)
    run.send("half a header", b"\0\x12\0")
    run.send("no bytes", b"")
    run.send("header without a client id", struct.pack(">hhi", ApiKey.METADATA, 1, 1))
    run.send("client id beyond the frame", HEADER.pack(ApiKey.METADATA, 0, 1, 3000) + BODY)
    run.send("cut body", HEADER.pack(ApiKey.METADATA, 1, 1, -1) + b"\0\0")
    run.send("name beyond the frame", HEADER.pack(ApiKey.METADATA, 1, 1, -1) + struct.pack(">ih", 1, 9999))
    no_topics = struct.pack(">ii", -1, 0)
    run.send("client id that is no text", HEADER.pack(ApiKey.LIST_OFFSETS, 1, 1, 2) + b"\xff\xfe" + no_topics)
    for version in (3, 4):
        run.send(f"ApiVersions v{version} without a body", HEADER.pack(ApiKey.API_VERSIONS, version, 1, -1) + b"\0")
    header = HEADER.pack(ApiKey.LIST_OFFSETS, 1, 1, -1)
    run.send("bytes behind the request", header + no_topics + b"more")
    # Tagged fields that the broker does not know are skipped, in the header and in the body (KIP-482).
    flexible = HEADER.pack(ApiKey.LIST_OFFSETS, 6, 1, -1)
    body = struct.pack(">ib", -1, 0) + b"\1"
    run.send("unknown tag in the header", flexible + b"\1\x63\2ab" + body + b"\0")
    run.send("unknown tag in the body", flexible + b"\0" + body + b"\1\x63\2ab")
    run.send("unknown tag beyond the frame", flexible + b"\0" + body + b"\1\x63\x20ab")
    run.send("unknown tags out of order", flexible + b"\0" + body + b"\2\x63\1a\x62\1b")
    run.send("the same tag twice", flexible + b"\0" + body + b"\2\x63\1a\x63\1b")


def requests_with_a_null(entity: type[Entity]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each field that may not be null, as null, in a request that is otherwise plain; with the field's path."""
    for field in fields_of(entity):
        if field.tag is not None:
            continue
        if field.entity is not None and field.is_array:
            for path, values in requests_with_a_null(field.entity):
                yield f"{field.name}.{path}", {field.name: [values]}
        if not field.is_nullable and (field.is_array or field.kafka_type in ("string", "bytes")):
            yield field.name, {field.name: None}


def _register_nulls(key: ApiKey) -> None:
    def play(run: Run) -> None:
        for path, values in requests_with_a_null(load_request_schema(key, run.version)):
            run.ask(path, **values)

    play.__name__ = f"nulls_in_{APIS[key].name}"
    case(key)(play)


for _key in SERVED:
    _register_nulls(_key)
