"""What the measured records hold: text such as services send, neither constant nor random noise.

Each value is a JSON object with a few fields that repeat and a few that do not, cut or filled to its size; lz4 makes a
batch of them about half as large. The same seed gives the same values, so every target gets the same bytes.
"""

from __future__ import annotations

import random
from typing import Final

POOL_SIZE: Final = 997
"""Distinct values. A prime, so that no partition sees only a few of them."""

_SEED: Final = 20_13
_SERVICES: Final = ("checkout", "inventory", "payments", "search", "sessions", "shipping")
_LEVELS: Final = ("debug", "info", "info", "info", "warning", "error")


def values(size_bytes: int) -> list[bytes]:
    """A pool of values of exactly this size, to be used in turn."""
    generator = random.Random(_SEED)
    return [_value(generator, size_bytes) for _ in range(POOL_SIZE)]


def _value(generator: random.Random, size_bytes: int) -> bytes:
    text = ""
    while len(text) < size_bytes:
        text += (
            f'{{"at":{1_700_000_000_000 + generator.randrange(10**9)},"service":"{generator.choice(_SERVICES)}",'
            f'"level":"{generator.choice(_LEVELS)}","trace":"{generator.getrandbits(64):016x}",'
            f'"ms":{generator.randrange(5000)},"user":{generator.randrange(10**6)}}}\n'
        )
    return text.encode()[:size_bytes]
