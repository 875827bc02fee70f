"""The hash by which Java clients, and all that want to agree with them, place keys on partitions."""

import struct
from typing import Final

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Austin Appleby's MurmurHash2 with Kafka's seed, as a number of 32 bits without sign."""
    whole_size = len(data) & ~3
    state = _SEED ^ len(data)
    for (word,) in struct.iter_unpack("<I", data[:whole_size]):
        mixed = (word * _MULTIPLIER) & _MASK
        mixed = ((mixed ^ (mixed >> 24)) * _MULTIPLIER) & _MASK
        state = ((state * _MULTIPLIER) & _MASK) ^ mixed
    if whole_size < len(data):
        state = ((state ^ int.from_bytes(data[whole_size:], "little")) * _MULTIPLIER) & _MASK
    state = ((state ^ (state >> 13)) * _MULTIPLIER) & _MASK
    return state ^ (state >> 15)


def partition_of_key(key: bytes, partition_count: int) -> int:
    """Where the Java client puts a record with this key: it drops the hash's sign, as Utils.toPositive does."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
