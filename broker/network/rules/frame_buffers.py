"""Buffers for large unfinished frames, used again when nothing refers to what was in them.

A new buffer is filled with zeros first, and its pages come from the system one by one: for frames of a megabyte, in
buffers that grow with them, that takes more of a processor than everything else that is done to receive them.
"""

from __future__ import annotations

from typing import Final

POOLED_BYTES_MIN: Final = 64 * 1024
"""Smaller ones come from the heap, which has them at hand."""
BUFFER_BYTES: Final = 1024 * 1024 + 64 * 1024
"""A producer's largest request, as libraries have it by default, is a megabyte with a little around it."""
BUFFERS_MAX: Final = 4
"""Kept for good. Requests are mostly done with when the next is received; more connections at once get new buffers."""


class FrameBuffers:
    """Those of all connections of one loop. Nothing is allocated before it is wanted."""

    __slots__ = ("_buffers",)

    def __init__(self) -> None:
        self._buffers: list[bytearray] = []

    def take(self, size: int) -> memoryview | None:
        """Room for at least so many bytes, which has what was in it before; None when a new buffer is to be made.

        It is taken for as long as the view, or anything made of it, lives.
        """
        if not POOLED_BYTES_MIN <= size <= BUFFER_BYTES:
            return None
        for buffer in self._buffers:
            if _is_free(buffer):
                return memoryview(buffer)
        if len(self._buffers) == BUFFERS_MAX:
            return None
        buffer = bytearray(BUFFER_BYTES)
        self._buffers.append(buffer)
        return memoryview(buffer)


def _is_free(buffer: bytearray) -> bool:
    """Python lets no buffer change its size that a view refers to."""
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return False
    return True
