"""The question for readiness, and what is made of the answer."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.local.metadata_probe import REQUEST, broker_ids
from penstock.protocol.apis import APIS, ApiKey


def broker(node_id: int, host: bytes, rack: bytes | None) -> bytes:
    racks = struct.pack(">h", -1) if rack is None else struct.pack(">h", len(rack)) + rack
    return struct.pack(">ih", node_id, len(host)) + host + struct.pack(">i", 9092) + racks


def response(*brokers: bytes, correlation_id: int = 0) -> bytes:
    # A controller id and an empty list of topics follow.
    return struct.pack(">ii", correlation_id, len(brokers)) + b"".join(brokers) + struct.pack(">ii", 1, 0)


def test_request_is_metadata_in_a_version_that_brokers_serve() -> None:
    size, key, version = struct.unpack_from(">ihh", REQUEST)
    assert size == len(REQUEST) - 4
    assert key == ApiKey.METADATA
    assert APIS[key].min_version <= version < APIS[key].first_flexible_version


def test_all_live_brokers_are_found_with_and_without_rack() -> None:
    assert broker_ids(response()) == frozenset()
    assert broker_ids(response(broker(1, b"127.0.0.1", None), broker(7, b"h", b"east"))) == {1, 7}


def test_answer_to_another_question_is_refused() -> None:
    with pytest.raises(ValueError, match="correlation id 5"):
        broker_ids(response(correlation_id=5))


def test_answer_that_is_cut_off_is_refused() -> None:
    whole = response(broker(1, b"127.0.0.1", b"east"))
    for size in range(len(whole) - 8 - len(b"east")):
        with pytest.raises(ValueError, match="end too early"):
            broker_ids(whole[:size])


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_a_value_error(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(broker_ids(data), frozenset)
