"""What Apache Kafka 4.3.1 answered to the script, kept so that the comparison needs no Java."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

from differential.script import Transcript

FILE = Path(__file__).parents[1] / "golden" / "kafka-4.3.1-answers.json.xz"


def read_golden(file: Path = FILE) -> Transcript:
    transcript: Transcript = json.loads(lzma.decompress(file.read_bytes()))
    return transcript


def write_golden(transcript: Transcript, file: Path = FILE) -> None:
    """The same transcript gives the same bytes."""
    text = json.dumps(transcript, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    file.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def as_recorded(transcript: Transcript) -> Transcript:
    """As it would come back from the file: keys are texts there, tuples are lists."""
    recorded: Transcript = json.loads(json.dumps(transcript))
    return recorded
