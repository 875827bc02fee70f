"""Small damage to good bytes: what transport, disk and malice do to them."""

from __future__ import annotations

from random import Random

# The numbers at which lengths, counts and varints change their meaning.
_EDGES = (0, 1, 2, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF)
_WORDS = (
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"\0\0\0\1",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
)


def mutate(data: bytes, source: Random, *, start: int = 0) -> bytes:
    """`data` with one to seven changes at or behind `start`: bytes, whole numbers, cuts, repetitions, insertions."""
    out = bytearray(data)
    for _ in range(source.randrange(1, 8)):
        position = source.randrange(start, len(out) + 1)
        match source.randrange(8):
            case 0:
                del out[position:]
            case 1:
                del out[position : position + source.randrange(1, 9)]
            case 2:
                word = source.choice(_WORDS)
                out[position : position + len(word)] = word
            case 3:
                out[position:position] = source.choice(_WORDS)
            case 4:
                out[position:position] = out[position : position + source.randrange(1, 33)]
            case _:
                if position < len(out):
                    out[position] = source.choice((*_EDGES, source.randrange(256), out[position] ^ 1))
    return bytes(out)
