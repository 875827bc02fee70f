"""Faults of links as rules of nftables, in the network of the node that the links lead to.

A link is told by addresses and ports: requests come from the source's address to a port that the target listens on,
responses go back. A rule for either concerns no connection that the target opens itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from .link import CutMode, Link, Stream

TABLE: Final = "links"


class LinkRule(NamedTuple):
    """What becomes of packets: all of them by `cut`, or so many of a hundred are lost."""

    cut: CutMode | None = None
    loss_percent: int = 0
    stream: Stream = "both"


def table_of(
    target: str, rules: Mapping[Link, LinkRule], addresses: Mapping[str, str], ports: Mapping[str, Iterable[int]]
) -> str:
    """All rules of the links to one node, in place of those that it had before; `ports` are those it listens on."""
    listening = ", ".join(map(str, ports[target]))
    requests, responses = [], []
    for link, rule in rules.items():
        if link.target != target:
            continue
        source = addresses[link.source]
        if rule.stream != "responses":
            requests.append(f"ip saddr {source} tcp dport {{ {listening} }} {_verdict(rule)};")
        if rule.stream != "requests":
            responses.append(f"ip daddr {source} tcp sport {{ {listening} }} {_verdict(rule)};")
    return "\n".join(
        [
            # Made so that there is one to delete: what was there before goes in the same transaction.
            f"table inet {TABLE}",
            f"delete table inet {TABLE}",
            f"table inet {TABLE} {{",
            "chain requests { type filter hook input priority 0;",
            *requests,
            "}",
            "chain responses { type filter hook output priority 0;",
            *responses,
            "}",
            "}",
            "",
        ]
    )


def _verdict(rule: LinkRule) -> str:
    if rule.loss_percent:
        return f"numgen random mod 100 < {rule.loss_percent} drop"
    if rule.cut == "silence":
        return "drop"
    # Of a connection that stands and of a new one; the packets of the reset itself have to come through.
    return "tcp flags & rst == 0 reject with tcp reset"
