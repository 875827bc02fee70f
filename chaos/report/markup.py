"""Text, times and counts as HTML. What comes from a run goes through `text`: topics and errors hold any characters."""

from __future__ import annotations

import html
import json
from typing import Any, Final

_TEXT_MAX: Final = 400


def text(value: object, *, limit: int = _TEXT_MAX) -> str:
    shown = str(value)
    return html.escape(shown if len(shown) <= limit else f"{shown[: limit - 1]}…", quote=True)


def compact(value: Any, *, limit: int = _TEXT_MAX) -> str:
    """Data as JSON on one line."""
    if isinstance(value, str):
        return text(value, limit=limit)
    return text(json.dumps(value, ensure_ascii=False, default=str), limit=limit)


def script_data(value: Any) -> str:
    """JSON within a script element: no `</script>` ends it early."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def seconds(ns: int, *, digits: int = 2) -> str:
    return f"{ns / 1e9:.{digits}f} s"


def duration(ns: int) -> str:
    """As a person says it: 850 ms, 12.4 s, 10 min 3 s."""
    if ns < 1_000_000_000:
        return f"{ns / 1e6:.0f} ms"
    if ns < 60_000_000_000:
        return f"{ns / 1e9:.1f} s"
    minutes, rest = divmod(round(ns / 1e9), 60)
    if minutes < 60:
        return f"{minutes} min" + (f" {rest} s" if rest else "")
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h" + (f" {minutes} min" if minutes else "")


def count(number: int, noun: str = "", plural: str = "s") -> str:
    shown = f"{number:,}".replace(",", "\u202f")
    return shown if not noun else f"{shown} {noun}{'' if number == 1 else plural}"
