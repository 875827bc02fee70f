"""Frames of a link between voters: a length of four bytes, big-endian, then as many bytes."""

import struct
from collections.abc import Iterator
from typing import Final

from ....protocol.errors import CorruptData

_LENGTH: Final = struct.Struct(">I")

# The largest message: a part of entries (512 KiB) or one command of 1 MiB, a part of a snapshot with one chunk of any
# size that an image is cut into; with room to spare.
MAX_FRAME_BYTES: Final = 8 * 1024 * 1024

# Before a peer has proved who it is, it may make us hold no more than this.
MAX_HELLO_BYTES: Final = 1024


def encode_frame(payload: bytes) -> bytes:
    assert len(payload) <= MAX_FRAME_BYTES, f"a message of {len(payload)} bytes"
    return _LENGTH.pack(len(payload)) + payload


class FrameReader:
    """Cuts a stream into frames. What it holds is bounded by `max_bytes`, whatever is announced."""

    def __init__(self, max_bytes: int = MAX_HELLO_BYTES) -> None:
        self.max_bytes = max_bytes
        self._held = bytearray()

    def feed(self, data: bytes) -> None:
        self._held += data

    def frames(self) -> Iterator[bytes]:
        """Yield the frames that are complete. Raises CorruptData when one is announced that is too large."""
        while len(self._held) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._held)
            if length > self.max_bytes:
                raise CorruptData(f"a frame of {length} bytes, where {self.max_bytes} are allowed")
            end = _LENGTH.size + length
            if len(self._held) < end:
                return
            frame = bytes(self._held[_LENGTH.size : end])
            del self._held[:end]
            yield frame
