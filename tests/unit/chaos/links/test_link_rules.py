"""Faults of links as rules of a firewall: which packets they concern, and that a heal leaves none."""

from __future__ import annotations

import pytest

from penstock.chaos.links.link import Link
from penstock.chaos.links.link_rules import LinkRule, table_of

ADDRESSES = {"1": "10.0.0.1", "2": "10.0.0.2", "client-0": "10.0.0.200"}
PORTS = {"1": (9092, 9093), "2": (9192,)}
LINK = Link("2", "1")
REQUESTS = "ip saddr 10.0.0.2 tcp dport { 9092, 9093 } "
RESPONSES = "ip daddr 10.0.0.2 tcp sport { 9092, 9093 } "


def rules(rule: LinkRule, link: Link = LINK, target: str = "1") -> list[str]:
    lines = table_of(target, {link: rule}, ADDRESSES, PORTS).splitlines()
    return [line for line in lines if line.startswith("ip ")]


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        (LinkRule(cut="silence"), "drop;"),
        (LinkRule(cut="reset"), "tcp flags & rst == 0 reject with tcp reset;"),
        (LinkRule(cut="refusal"), "tcp flags & rst == 0 reject with tcp reset;"),
        (LinkRule(loss_percent=30), "numgen random mod 100 < 30 drop;"),
    ],
)
def test_a_rule_concerns_requests_and_responses_of_its_link(rule: LinkRule, verdict: str) -> None:
    assert rules(rule) == [REQUESTS + verdict, RESPONSES + verdict]


def test_one_direction_is_one_rule() -> None:
    assert rules(LinkRule(cut="silence", stream="requests")) == [f"{REQUESTS}drop;"]
    assert rules(LinkRule(cut="silence", stream="responses")) == [f"{RESPONSES}drop;"]


def test_links_to_other_nodes_are_not_in_a_node_s_table() -> None:
    assert rules(LinkRule(cut="silence"), Link("client-0", "2")) == []


def test_a_table_replaces_the_one_before() -> None:
    lines = table_of("1", {}, ADDRESSES, PORTS).splitlines()
    assert lines[:2] == ["table inet links", "delete table inet links"]
