"""Checksummed frames: how the journal and the snapshots stand on disk.

    magic       4 bytes  "PQF1"
    sequence    8        one more than the frame before
    length      4        of the payload
    checksum    4        CRC-32C of sequence, length and payload
    payload     length

Numbers are big-endian. A writer syncs one frame before it begins the next, so after a crash only the last one can be
incomplete, and it was never promised to anyone: it is cut. A bad frame with a good one behind it was promised: that is
damage. Bit rot in the very last frame looks like a torn write, as in every log that is kept once.
"""

import struct
from typing import NamedTuple

from ...protocol.checksum import crc32c
from ...protocol.errors import CorruptData

_MAGIC = b"PQF1"
_HEAD = struct.Struct(">4sQII")
_CHECKED = struct.Struct(">QI")


class Frame(NamedTuple):
    """A frame that was read; `end` is the position behind it."""

    sequence: int
    payload: bytes
    end: int


class FrameScan(NamedTuple):
    """The good frames of a file; they fill it up to `end`. What follows is a torn write, if anything does."""

    frames: tuple[Frame, ...]
    end: int


def encode_frame(sequence: int, payload: bytes) -> bytes:
    checksum = crc32c(payload, crc32c(_CHECKED.pack(sequence, len(payload))))
    return _HEAD.pack(_MAGIC, sequence, len(payload), checksum) + payload


def scan_frames(data: bytes, first_sequence: int | None, path: str) -> FrameScan:
    """Read the frames of a file. Any sequence may be the first when None is given.

    Raises CorruptData, with a sentence, when a bad frame is followed by a good one or a frame is missing.
    """
    frames: list[Frame] = []
    position = 0
    expected = first_sequence
    while True:
        frame = _read_frame(data, position)
        if frame is None:
            break
        if expected is not None and frame.sequence != expected:
            raise CorruptData(
                f"{path} has the frame of sequence {frame.sequence} at byte {position} where {expected} was expected"
            )
        frames.append(frame)
        position = frame.end
        expected = frame.sequence + 1
    lowest = frames[-1].sequence if frames else -1 if first_sequence is None else first_sequence - 1
    candidate = data.find(_MAGIC, position)
    while candidate != -1:
        later = _read_frame(data, candidate)
        if later is not None and later.sequence > lowest:
            raise CorruptData(
                f"{path} is damaged at byte {position}: the frame there is bad and the one at byte {candidate} "
                f"(sequence {later.sequence}) is good, so this is not a torn write"
            )
        candidate = data.find(_MAGIC, candidate + 1)
    return FrameScan(tuple(frames), position)


def _read_frame(data: bytes, position: int) -> Frame | None:
    if len(data) - position < _HEAD.size:
        return None
    magic, sequence, length, checksum = _HEAD.unpack_from(data, position)
    start = position + _HEAD.size
    if magic != _MAGIC or len(data) - start < length:
        return None
    payload = data[start : start + length]
    if crc32c(payload, crc32c(_CHECKED.pack(sequence, length))) != checksum:
        return None
    return Frame(sequence, payload, start + length)
