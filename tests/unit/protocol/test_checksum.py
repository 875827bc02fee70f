"""CRC-32C by the library's extension, and by its package where the extension is elsewhere."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

import pytest

from penstock.protocol import checksum

CHECK = 0xE3069283
"""Of the digits 1 to 9, in every table of such values."""


def test_value_goes_on_from_what_was_before() -> None:
    assert checksum.crc32c(b"123456789") == CHECK
    assert checksum.crc32c(memoryview(b"56789"), checksum.crc32c(bytearray(b"1234"))) == CHECK


def test_a_release_of_other_parts_is_loaded_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    find = PathFinder.find_spec

    def find_others(name: str, *arguments: Any) -> ModuleSpec | None:
        return None if name == "crc32c._crc32c" and "crc32c" not in sys.modules else find(name, *arguments)

    monkeypatch.delitem(sys.modules, "crc32c", raising=False)
    monkeypatch.setattr(PathFinder, "find_spec", find_others)
    assert checksum._load().crc32c(b"123456789") == CHECK
