"""Compression: what goes in comes out, damaged data is corrupt, and a small batch cannot become a huge one."""

import contextlib
import gzip
import random

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol.compression import Compression, compress, decompress
from penstock.protocol.errors import CorruptData

MAX_SIZE = 10_000_000
EVERY_TYPE = pytest.mark.parametrize("compression", list(Compression), ids=lambda one: str(one.name))
COMPRESSING = [one for one in Compression if one != Compression.NONE]


@EVERY_TYPE
@given(data=st.binary(max_size=2000), repeat=st.integers(1, 50))
def test_what_goes_in_comes_out(compression: Compression, data: bytes, repeat: int) -> None:
    compressed = compress(compression, memoryview(data * repeat))
    assert bytes(decompress(compression, memoryview(compressed), MAX_SIZE)) == data * repeat


@EVERY_TYPE
def test_large_data_of_many_blocks(compression: Compression) -> None:
    data = random.Random(5).randbytes(100_000) + bytes(3_000_000)
    assert bytes(decompress(compression, compress(compression, data), MAX_SIZE)) == data


@pytest.mark.parametrize("compression", COMPRESSING, ids=lambda one: str(one.name))
def test_a_small_batch_cannot_become_a_huge_one(compression: Compression) -> None:
    compressed = compress(compression, bytes(1_000_000))
    assert len(decompress(compression, compressed, 1_000_000)) == 1_000_000
    with pytest.raises(CorruptData):
        decompress(compression, compressed, 999_999)


@pytest.mark.fuzz
@pytest.mark.parametrize("compression", COMPRESSING, ids=lambda one: str(one.name))
@given(seed=st.integers(0, 2**64 - 1))
def test_damaged_data_is_corrupt_and_nothing_worse(compression: Compression, seed: int) -> None:
    source = random.Random(seed)
    compressed = bytearray(compress(compression, source.randbytes(300) * 5))
    for _ in range(source.randrange(1, 4)):
        compressed[source.randrange(len(compressed))] = source.randrange(256)
    with contextlib.suppress(CorruptData):
        decompress(compression, compressed[: source.randrange(len(compressed) + 1)], MAX_SIZE)


def test_lz4_blocks_are_independent() -> None:
    # Kafka's Java reader refuses others. The flag is bit 5 of the byte after the magic.
    assert compress(Compression.LZ4, bytes(200_000))[4] & 0x20


def test_snappy_is_read_with_and_without_framing() -> None:
    assert compress(Compression.SNAPPY, b"records").startswith(b"\x82SNAPPY\0\0\0\0\1\0\0\0\1")
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(b"records")), MAX_SIZE) == b"records"


def test_gzip_of_another_implementation_is_read() -> None:
    assert bytes(decompress(Compression.GZIP, gzip.compress(b"records"), MAX_SIZE)) == b"records"


@pytest.mark.parametrize("compression", [5, 6, 7])
def test_types_that_do_not_exist(compression: int) -> None:
    with pytest.raises(CorruptData):
        decompress(compression, b"", MAX_SIZE)
    with pytest.raises(ValueError, match="no compression"):
        compress(compression, b"")
