"""A known bug as a patch, applied around a run. No product module knows of any."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from msgspec import Struct


class Mutant(Struct, frozen=True, kw_only=True):
    """`make` takes the attribute that is there and returns what takes its place."""

    name: str
    bug: str
    owner: type | ModuleType
    attribute: str
    make: Callable[[Any], Any]

    @contextmanager
    def applied(self) -> Iterator[None]:
        original = self.owner.__dict__[self.attribute]
        setattr(self.owner, self.attribute, self.make(original))
        try:
            yield
        finally:
            setattr(self.owner, self.attribute, original)
