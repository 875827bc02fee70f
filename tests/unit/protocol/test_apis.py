"""The table of APIs is Kafka's, against the schemas that kio generates from Apache Kafka."""

import json
from pathlib import Path

import kio.index
import kio.schema.request_header.v2
import kio.schema.response_header.v1
import pytest

from penstock.protocol.apis import APIS, ApiKey, request_header_version, response_header_version

EVERY_VERSION = [(api.key, version) for api in APIS.values() for version in range(api.min_version, api.max_version + 1)]


def test_every_key_has_a_row() -> None:
    assert set(APIS) == set(ApiKey)


@pytest.mark.thorough
@pytest.mark.parametrize(("key", "version"), EVERY_VERSION, ids=lambda value: getattr(value, "name", str(value)))
def test_header_versions_are_kafkas(key: ApiKey, version: int) -> None:
    request = kio.index.load_request_schema(key, version)
    response = kio.index.load_response_schema(key, version)
    is_2 = request.__header_schema__ is kio.schema.request_header.v2.RequestHeader
    is_1 = response.__header_schema__ is kio.schema.response_header.v1.ResponseHeader
    assert request_header_version(key, version) == (2 if is_2 else 1)
    assert response_header_version(key, version) == (1 if is_1 else 0)


@pytest.mark.parametrize("version", range(5))
def test_api_versions_response_header_is_always_version_0(version: int) -> None:
    assert response_header_version(ApiKey.API_VERSIONS, version) == 0


def test_produce_is_advertised_from_0_and_served_from_3() -> None:
    assert APIS[ApiKey.PRODUCE].advertised_min_version == 0
    assert not APIS[ApiKey.PRODUCE].has_version(2)
    assert APIS[ApiKey.PRODUCE].has_version(3)
    assert APIS[ApiKey.FETCH].advertised_min_version == 4


def test_versions_name_their_kips() -> None:
    for api in APIS.values():
        assert all(api.has_version(version) for version in api.kips)
    assert APIS[ApiKey.FETCH].kips[12] == "KIP-482, KIP-595"


@pytest.mark.parametrize("listener", ["broker", "controller"])
def test_the_table_is_what_apache_kafka_answers(listener: str) -> None:
    golden = json.loads((Path(__file__).parents[2] / "golden" / "kafka-4.3.1-api-versions.json").read_text())[listener]
    # Kafka shows the telemetry APIs (KIP-714) only when something on the broker receives telemetry.
    telemetry = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    served = {
        str(int(key)): [api.advertised_min_version, api.max_version]
        for key, api in APIS.items()
        if (api.on_broker if listener == "broker" else api.on_controller) and key not in telemetry
    }
    assert served == golden["apis"]
