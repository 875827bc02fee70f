"""ApiVersions says what Apache Kafka 4.3.1 says on a broker's listener, as far as it is built.

The golden file is what Kafka 4.3.1 answered with default settings and a fresh cluster.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.api_versions.v4.response import ApiVersionsResponse

from penstock.broker.apis.api_versions import api_versions, register, unsupported_version
from penstock.broker.cluster.metadata_cache import MetadataCache
from penstock.broker.network.handlers import Handlers
from penstock.broker.network.request import Answer, Request, RequestContext
from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.messages import decode_response, encode_request, encode_response
from penstock.quorum.metadata.image import MetadataImage

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "api_versions_kafka_4_3_1.json").read_text())
IMAGE = MetadataImage(offset=41, features={"metadata.version": 30, "transaction.version": 2})
# Kafka tells of telemetry only when a plug-in receives it.
TELEMETRY = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
ON_BROKERS = tuple(api for api in APIS.values() if api.on_broker and api.key not in TELEMETRY)


class Connection:
    """Takes what a request says to its connection."""

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self.client_software = ""

    def on_answer(self, _request: Request, answer: Answer) -> None:
        self.answer = answer

    def set_context(self, context: RequestContext) -> None:
        self.client_software = context.client_software

    def hold_later_requests(self, request: Request) -> None: ...
    def release_later_requests(self, request: Request) -> None: ...
    def mute(self, throttle_time_ms: int) -> None: ...


def handlers_of(metadata: MetadataCache) -> Handlers:
    metadata.image = IMAGE
    handlers = Handlers()
    register(handlers, metadata)
    return handlers


def ask(
    frame: bytes, version: int, body_offset: int, *, handlers: Handlers | None = None, correlation_id: int = 7
) -> tuple[Connection, bytes]:
    handlers = handlers or handlers_of(MetadataCache())
    connection = Connection()
    context = RequestContext(listener_name="PLAINTEXT", peer_host="::1", client_id=None)
    request = Request(connection, 18, version, correlation_id, context, memoryview(frame), body_offset)
    handlers.by_bytes[ApiKey.API_VERSIONS](request)
    answer = connection.answer
    assert isinstance(answer, bytes | tuple)
    return connection, answer if isinstance(answer, bytes) else b"".join(
        part for part in answer if isinstance(part, bytes)
    )


def ask_as(name: str, software_version: str, version: int = 4) -> tuple[Connection, ApiVersionsResponse]:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software_version)
    frame = encode_request(ApiKey.API_VERSIONS, version, 7, None, request)[4:]
    body_offset = len(frame) - (len(name) + len(software_version) + 3)
    connection, answer = ask(frame, version, body_offset)
    correlation_id, response = decode_response(ApiKey.API_VERSIONS, version, answer[4:])
    assert correlation_id == 7
    assert isinstance(response, ApiVersionsResponse)
    return connection, response


def test_ranges_equal_those_of_kafka() -> None:
    response = api_versions(ON_BROKERS, IMAGE, 4)
    assert [[api.api_key, api.min_version, api.max_version] for api in response.api_keys] == GOLDEN["api_keys"]


def test_only_what_is_built_is_told() -> None:
    built = (APIS[ApiKey.METADATA], APIS[ApiKey.API_VERSIONS], APIS[ApiKey.BROKER_HEARTBEAT])
    assert [api.api_key for api in api_versions(built, IMAGE, 4).api_keys] == [3, 18]


@pytest.mark.parametrize("version", [3, 4])
def test_supported_levels_are_among_those_of_kafka(version: int) -> None:
    features = api_versions((), IMAGE, version).supported_features
    golden = GOLDEN[f"supported_features_v{version}"]
    for feature in features:
        low, high = golden[feature.name]
        assert low == feature.min_version <= feature.max_version <= high
    # Streams groups are not built.
    assert {feature.name for feature in features} == golden.keys() - {"streams.version"}


def test_finalized_features_are_those_of_the_image_with_its_offset_as_epoch() -> None:
    response = api_versions((), IMAGE, 3)
    assert response.finalized_features_epoch == 41
    assert [(one.name, one.min_version_level, one.max_version_level) for one in response.finalized_features] == [
        ("metadata.version", 30, 30),
        ("transaction.version", 2, 2),
    ]
    for name, level in ((one.name, one.max_version_level) for one in response.finalized_features):
        assert level == GOLDEN["finalized_features"][name]


def test_version_that_does_not_exist_is_answered_in_version_0_like_kafka() -> None:
    frame = encode_response(ApiKey.API_VERSIONS, 0, 7, unsupported_version())
    assert frame[4:].hex() == GOLDEN["unsupported_version_frame"]
    _, answer = ask(b"", version=99, body_offset=0)
    assert answer == frame


def test_an_answer_is_kept_for_its_version_until_the_image_changes() -> None:
    metadata = MetadataCache()
    handlers = handlers_of(metadata)
    told = ApiVersionsRequest(client_software_name="a", client_software_version="1")

    def epoch_told(version: int, correlation_id: int) -> int:
        frame = encode_request(ApiKey.API_VERSIONS, version, correlation_id, None, told)[4:]
        _, answer = ask(frame, version, len(frame) - 5, handlers=handlers, correlation_id=correlation_id)
        fresh = encode_response(
            ApiKey.API_VERSIONS, version, correlation_id, api_versions(handlers.built, metadata.image, version)
        )
        assert answer == fresh
        _, response = decode_response(ApiKey.API_VERSIONS, version, answer[4:])
        assert isinstance(response, ApiVersionsResponse)
        return response.finalized_features_epoch

    assert [epoch_told(version, 7 + index) for index, version in enumerate((4, 4, 3, 4))] == [41] * 4
    metadata.image = MetadataImage(offset=42, features={"metadata.version": 31})
    assert [epoch_told(version, 17 + index) for index, version in enumerate((4, 3, 4))] == [42] * 3


def test_client_software_is_remembered() -> None:
    connection, response = ask_as("librdkafka", "2.12.1")
    assert response.error_code == 0
    assert connection.client_software == "librdkafka/2.12.1"


@pytest.mark.parametrize(("name", "version"), [("", ""), ("fo ", "bar"), ("foo", "-ar"), ("foo", "")])
def test_client_software_that_is_no_name_is_refused(name: str, version: str) -> None:
    connection, response = ask_as(name, version)
    assert response.error_code == 42
    assert response.api_keys == ()
    assert connection.client_software == ""
