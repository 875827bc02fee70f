"""Values are structs of msgspec (decision 31): a copy of one with other fields."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # Of this one mypy checks the names and types of the fields; msgspec declares its own for any.
    from dataclasses import replace
else:
    from msgspec.structs import replace

__all__ = ["replace"]
