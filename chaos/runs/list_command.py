"""`penstock chaos list`: the workloads and the faults that a run can be made of."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ..faults.kinds import Kind


@click.command("list")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object.")
def list_parts(is_json: bool) -> None:
    """List the workloads and the faults that `penstock chaos run` takes.

    A fault is named alone, as `kill`, or with what it hits, as `kill:leaders`; alone, each time another of these is
    drawn. Faults of links say which `--links` have them.
    """
    from ..faults.kinds import KINDS, LINK_SELECTORS, NODE_SELECTORS
    from ..workloads.catalogue import WORKLOADS

    real = [kind for kind in KINDS.values() if kind.is_real]
    if is_json:
        told = {
            "workloads": {workload.name: workload.sentence for workload in WORKLOADS.values()},
            "faults": {
                kind.name: {
                    "about": kind.about,
                    "group": kind.group,
                    "selectors": list(kind.selectors),
                    **({"links": list(kind.breakers)} if kind.group == "links" else {}),
                }
                for kind in real
            },
            "links": dict(LINK_SELECTORS),
            "nodes": dict(NODE_SELECTORS),
        }
        click.echo(json.dumps(told, indent=2))
        return
    _print("Workloads", {workload.name: workload.sentence for workload in WORKLOADS.values()})
    for group in dict.fromkeys(kind.group for kind in real):
        _print(f"Faults of {group}", {kind.name: _about(kind) for kind in real if kind.group == group})
    _print("What faults of links hit, as in partition:leaders", dict(LINK_SELECTORS))
    _print("What faults of nodes hit, as in kill:minority", dict(NODE_SELECTORS))


def _about(kind: Kind) -> str:
    return f"{kind.about} ({', '.join(kind.breakers)})" if kind.group == "links" else kind.about


def _print(title: str, lines: dict[str, str]) -> None:
    click.secho(title, bold=True)
    width = max(map(len, lines))
    for name, sentence in lines.items():
        click.echo(f"  {name:{width}}  {sentence}")
    click.echo()
