"""What kio writes for a request or a response: what our own readers are compared with."""

from __future__ import annotations

import io
from typing import Any

from kio.serial import entity_writer


def written_by_kio(entity: Any) -> bytes:
    """Without a header."""
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()
