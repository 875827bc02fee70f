"""A link: the connections that one end of a cluster opens to another. Ends are node ids and client slots."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple, TypeAlias

CLIENT: Final = "client-"

CutMode: TypeAlias = Literal["silence", "reset", "refusal"]
"""How a link that is cut looks to those who use it: nothing comes through and connections stand, they are reset, or
they are closed and new ones are refused."""
Stream: TypeAlias = Literal["both", "requests", "responses"]
"""What a cut takes away; `responses` alone is the case in which a request is done and its sender cannot know."""


class Link(NamedTuple):
    """The connections that `source` opens to `target`, with the responses that come back on them.

    Those that `target` opens to `source` are another link.
    """

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}→{self.target}"


def client_slot(number: int) -> str:
    """The end that the clients of this slot are; slots count from 0."""
    return f"{CLIENT}{number}"


def all_links(nodes: Iterable[str], slots: Iterable[str]) -> tuple[Link, ...]:
    """Every link of a cluster: from each node and each slot to each node but itself."""
    nodes = tuple(nodes)
    return tuple(Link(source, target) for source in (*slots, *nodes) for target in nodes if source != target)


def links_of(node: str, links: Iterable[Link]) -> tuple[Link, ...]:
    """Those that begin or end at this node."""
    return tuple(link for link in links if node in link)
