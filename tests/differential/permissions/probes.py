"""One question to a broker, with the resources that it touches: a row of the matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from differential.permissions.acl_states import CLUSTER_NAME, Kind, Operation

from penstock.protocol.apis import APIS, ApiKey

FRIEND = "friend"
"""A topic, a group and a transactional id that every user may do everything with that the question needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The names that stand in one question: those of its resources, and what became known of them."""

    name: str
    ids: Mapping[str, UUID]
    base_ms: int

    @property
    def topic(self) -> str:
        return f"t-{self.name}"

    @property
    def group(self) -> str:
        return f"g-{self.name}"

    @property
    def transactional_id(self) -> str:
        return f"x-{self.name}"

    @property
    def owner(self) -> str:
        """Of a delegation token."""
        return f"u-{self.name}"

    def resource(self, kind: Kind, tokens: Mapping[str, str]) -> str:
        """What an ACL of this kind is put on."""
        if kind is Kind.DELEGATION_TOKEN:
            return tokens[self.owner]
        names = {
            Kind.TOPIC: self.topic,
            Kind.GROUP: self.group,
            Kind.TRANSACTIONAL_ID: self.transactional_id,
            Kind.USER: f"User:{self.owner}",
            Kind.CLUSTER: CLUSTER_NAME,
        }
        return names[kind]

    @property
    def own_words(self) -> dict[str, str]:
        """What is visible under another name in what is compared."""
        return {
            self.topic: "topic",
            self.group: "group",
            self.transactional_id: "txn",
            self.owner: "owner",
            FRIEND: "friend",
            f"{FRIEND}-absent": "absent",
            "__cluster_metadata": "metadata",
            **dict.fromkeys(("1", "99"), "broker"),
        }


Request = Callable[[Cell], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A question.

    `touches` has the resources that its answer may depend on, each with what is allowed on it while another of them is
    varied. `makes` are the things that must be there before: topic, group, consumer group, transaction, token. Where it
    `is_lasting`, a question that is answered changes what the next would be answered: each user gets things of his own.
    `shows` are fields that are compared besides errors, names and operations.
    """

    name: str
    key: ApiKey
    version: int
    touches: Mapping[Kind, tuple[Operation, ...]]
    request: Request
    makes: frozenset[str] = frozenset()
    is_lasting: bool = False
    is_alone: bool = False
    """Whether its users have no ACLs but those of this question: its answer depends on all that they have."""
    on_controller: bool = False
    shows: frozenset[str] = field(default_factory=frozenset)

    @property
    def is_internal(self) -> bool:
        """Whether only nodes of the cluster ask it."""
        return not APIS[self.key].on_broker

    @property
    def slug(self) -> str:
        return self.name.replace(" ", "-").replace(",", "")


PROBES: dict[str, Probe] = {}


def always(values: Mapping[str, Any]) -> Request:
    """The same in every cell."""
    return lambda _: values


def probe(
    name: str,
    key: ApiKey,
    touches: Mapping[Kind, tuple[Operation, ...]],
    request: Request,
    *,
    version: int | None = None,
    makes: str = "",
    shows: str = "",
    is_lasting: bool = False,
    is_alone: bool = False,
    on_controller: bool = False,
) -> None:
    """Registers a row; without a version it is the API's last."""
    assert name not in PROBES, f"two questions are called {name}"
    PROBES[name] = Probe(
        name=name,
        key=key,
        version=APIS[key].max_version if version is None else version,
        touches=touches,
        request=request,
        makes=frozenset(makes.split()),
        shows=frozenset(shows.split()),
        is_lasting=is_lasting,
        is_alone=is_alone,
        on_controller=on_controller,
    )
