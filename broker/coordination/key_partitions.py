"""Which partition of its topic a coordinator keeps a group or a transactional id in: as Apache Kafka computes it."""

from functools import lru_cache
from typing import Final

_INT_BITS: Final = 32
_INT_MIN: Final = -(1 << 31)


@lru_cache(maxsize=1024)
def java_hash(text: str) -> int:
    """`String.hashCode` of Java: over the 16-bit units of the text, in 32 bits with a sign.

    Remembered, because every request of a group or a transaction asks for that of the same few ids.
    """
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(encoded), 2):
        value = (31 * value + (encoded[position] << 8 | encoded[position + 1])) & 0xFFFF_FFFF
    return value - (1 << _INT_BITS) if value >> (_INT_BITS - 1) else value


def partition_of_key(key: str, partition_count: int) -> int:
    value = java_hash(key)
    return (0 if value == _INT_MIN else abs(value)) % partition_count
