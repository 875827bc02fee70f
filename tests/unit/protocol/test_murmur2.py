"""Keys are placed as Java clients place them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol.murmur2 import murmur2, partition_of_key

ALL_BYTES = bytes(range(256))

# What org.apache.kafka.common.utils.Utils.murmur2 of kafka-clients 4.3.1 answers, a signed number.
JAVA = {
    b"": 275646681,
    b"a": -1563381124,
    b"ab": 316155434,
    b"abc": 479470107,
    b"abcd": -1323649548,
    b"abcde": 461995741,
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"EWR": 1590694519,
    b"JFK": 531569365,
    b"LGA": -1136745704,
    b"N14228": -1499626080,
    "éü€".encode(): 412708365,
    ALL_BYTES: -1948347274,
    ALL_BYTES[-1:]: -311467685,
    ALL_BYTES[-2:]: -1177224669,
    ALL_BYTES[-3:]: 1883754278,
    ALL_BYTES[-4:]: 2054173367,
    ALL_BYTES[-5:]: -2095176225,
    ALL_BYTES[-7:]: -1125860179,
    ALL_BYTES[-8:]: -2087653280,
}


@pytest.mark.parametrize("key", JAVA, ids=repr)
def test_hash_equals_javas(key: bytes) -> None:
    assert murmur2(key) == JAVA[key] & 0xFFFFFFFF


@pytest.mark.parametrize(("key", "partition"), [(b"EWR", 7), (b"JFK", 1), (b"LGA", 0), (b"a", 4), (b"", 9)])
def test_partition_of_twelve_equals_javas(key: bytes, partition: int) -> None:
    assert partition_of_key(key, 12) == partition


@given(st.binary(), st.integers(min_value=1, max_value=10_000))
def test_partition_is_always_there(key: bytes, partition_count: int) -> None:
    assert 0 <= partition_of_key(key, partition_count) < partition_count
