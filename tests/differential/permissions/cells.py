"""The matrix: each question, for each resource that it touches, in each state of the ACLs on that resource.

A cell has a user of its own state: one for each kind of resource and state of ACLs, who has that state on the resources
of all questions. So all ACLs can be there before the first question, and no question changes the answer to another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from differential.permissions.acl_states import NOTHING, AclState, Entry, Kind, Operation, states_of
from differential.permissions.probes import FRIEND, PROBES, Probe

WITHOUT_ACLS = "without-acls"
WITHOUT_TOPICS = (Kind.CLUSTER, Kind.DELEGATION_TOKEN, Kind.USER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A user and what may be varied for him; no kind: he has no ACL at all."""

    user: str
    kind: Kind | None
    state: AclState
    when: str | None = None
    """Where an ACL on a thing concerns other users as well: what else there is then. His things are his alone."""
    is_allowed_the_rest: bool = True
    """Whether he has ACLs on what is not varied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One cell: who asks what."""

    probe: Probe
    subject: Subject

    @property
    def key(self) -> tuple[str, str]:
        """Of no other cell."""
        return self.probe.name, self.subject.user

    @property
    def name(self) -> str:
        """What all names in the question end with."""
        is_own = self.probe.is_lasting or self.subject.state.is_shared or self.subject.when is not None
        return f"{self.probe.slug}.{self.subject.user}" if is_own else self.probe.slug

    @property
    def row(self) -> str:
        kind, when = self.subject.kind, self.subject.when
        name = "no ACLs" if kind is None else kind.name
        return f"{name}, {when}" if when else name


def subject(kind: Kind, place: int, state: AclState, *, alone: str = "") -> Subject:
    word = "" if not alone else f"-{alone}"
    return Subject(user=f"{kind.name.lower().replace('_', '-')}-{place}{word}", kind=kind, state=state)


def places(probes: Sequence[Probe] = ()) -> Iterator[Place]:
    """All cells, of all questions or of some."""
    without_acls = Subject(user=WITHOUT_ACLS, kind=None, state=NOTHING)
    for probe in probes or tuple(PROBES.values()):
        yield Place(probe=probe, subject=without_acls)
        for kind in probe.touches:
            for number, state in enumerate(states_of(kind)):
                if probe.is_alone and state.is_shared:
                    continue
                alone = probe.slug if probe.is_alone else ""
                yield Place(probe=probe, subject=subject(kind, number, state, alone=alone))


def users(cells: Sequence[Place]) -> dict[str, bool]:
    """Every user, and whether he is a super user."""
    return {cell.subject.user: cell.subject.state.is_super_user for cell in cells}


def bindings(cells: Sequence[Place], resource_of: Any) -> list[Mapping[str, Any]]:
    """All ACLs, as CreateAcls takes them, each once."""
    found = [one for cell in cells for one in _bindings(cell, resource_of)]
    return list({tuple(one.items()): one for one in found}.values())


def _bindings(cell: Place, resource_of: Any) -> Iterator[dict[str, Any]]:
    varied, user = cell.subject.kind, cell.subject.user
    if varied is None:
        return
    for kind, operations in cell.probe.touches.items():
        if kind is not varied and not cell.subject.is_allowed_the_rest:
            continue
        name = resource_of(cell, kind)
        entries = cell.subject.state.entries if kind is varied else tuple(map(_allowed, operations))
        for entry in entries:
            yield entry.binding(kind, name, user)
    if varied not in WITHOUT_TOPICS and not cell.probe.is_alone and cell.subject.when is None:
        for kind in (Kind.TOPIC, Kind.GROUP, Kind.TRANSACTIONAL_ID):
            yield Entry().binding(kind, FRIEND, user)


def _allowed(operation: Operation) -> Entry:
    return Entry(operation=operation)
