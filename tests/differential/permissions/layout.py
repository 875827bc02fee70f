"""How a matrix is put: which cells there are, and what is there when each is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from differential.permissions import cells, open_cells
from differential.permissions.cells import Place
from differential.permissions.probes import Probe
from differential.permissions.questions import PROBES

GOLDEN = Path(__file__).parents[2] / "golden"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """ACLs that are made together: those of some cells, and others. `is_asked`: of these cells before the next phase,
    whose ACLs would change the answers; of the rest, when their question's turn comes."""

    cells: tuple[Place, ...]
    others: tuple[Mapping[str, Any], ...] = ()
    asked: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """One recording of the matrix."""

    name: str
    file: Path
    """Of what Apache Kafka answered."""
    phases: tuple[Phase, ...]
    properties: Mapping[str, str]

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(cell for phase in self.phases for cell in phase.cells)

    @property
    def probes(self) -> tuple[Probe, ...]:
        """Every question once."""
        return tuple({cell.probe.name: cell.probe for cell in self.places}.values())


@cache
def closed() -> Layout:
    """Whoever has no permission may not."""
    every = tuple(cells.places(tuple(PROBES.values())))
    first = tuple(cell for cell in every if not cell.subject.state.is_shared)
    # A topic that everyone may write to lets everyone have a producer id: these are asked before there is one.
    alone = tuple(cell for cell in first if cell.probe.is_alone)
    shared = tuple(cell for cell in every if cell.subject.state.is_shared)
    return Layout(
        name="closed",
        file=GOLDEN / "kafka-4.3.1-permissions.json.xz",
        phases=(Phase(cells=first, asked=alone), Phase(cells=shared)),
        properties={},
    )


@cache
def open_to_all() -> Layout:
    """Where no ACL is found, everyone may."""
    probes = [PROBES[name] for name in open_cells.QUESTIONS]
    untouched = tuple(open_cells.without_acls(probes))
    cluster = tuple(open_cells.with_acls_on_the_cluster(probes))
    return Layout(
        name="open",
        file=GOLDEN / "kafka-4.3.1-permissions-open.json.xz",
        phases=(
            Phase(cells=untouched, asked=untouched),
            Phase(cells=cluster, others=(open_cells.CLUSTER_ACL,), asked=cluster),
            Phase(cells=tuple(open_cells.with_acls_on_everything(probes)), others=open_cells.WILDCARD_ACLS),
        ),
        properties={"allow.everyone.if.no.acl.found": "true"},
    )
