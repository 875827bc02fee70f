"""A tree of names and texts, which makes what is asked for. Kafka: `MetadataNode`, `MetadataLeafNode`."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct


class Leaf(Struct, frozen=True):
    """A name with a text."""

    text: str


class Folder(Struct, frozen=True):
    """A name with names below it; `names` in order, `child` gives None for a name that is not there."""

    names: Callable[[], Sequence[str]]
    child: Callable[[str], "Node | None"]


Node: TypeAlias = Leaf | Folder


def folder(children: Mapping[str, Node]) -> Folder:
    return Folder(lambda: tuple(children), children.get)
