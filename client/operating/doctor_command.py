"""`penstock doctor`: what is wrong with a cluster, or with a machine, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..terminal import print_json, say
from .admin_options import json_option, opener_options
from .cluster_look import take_look
from .feature_findings import feature_findings
from .findings import Finding, cluster_findings
from .machine_facts import machine_facts
from .machine_findings import machine_findings
from .status_view import finding_json

if TYPE_CHECKING:
    from .admin_options import Opener


@click.command()
@click.option("--machine", is_flag=True, help="Look at this machine, and at no cluster.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=Path(),
    help="With --machine: where log.dirs is, or is going to be; the working directory otherwise.",
)
@json_option
@opener_options
def doctor(opened: Opener, machine: bool, folder: Path, as_json: bool) -> None:
    """Find what is wrong with a cluster, or with this machine, and say what to do.

    Exit status 1: something is wrong. Advice alone is status 0.
    """
    if machine:
        findings = machine_findings(machine_facts(folder))
    else:
        with opened() as admin:
            look, features = take_look(admin, is_thorough=True), admin.list_features()
        found = (*cluster_findings(look), *feature_findings(features))
        findings = tuple(sorted(found, key=lambda finding: finding.severity))
    if as_json:
        is_ok = not any(finding.is_wrong for finding in findings)
        print_json({"is_ok": is_ok, "findings": [finding_json(finding) for finding in findings]})
    else:
        for line in finding_lines(findings):
            click.echo(line)
        if not findings:
            say("Nothing is wrong.")
    if any(finding.is_wrong for finding in findings):
        raise click.exceptions.Exit(1)


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """A sentence each, with what to do below it."""
    lines = []
    for finding in findings:
        lines += [f"{finding.severity.name.lower()}: {finding.sentence}", f"    {finding.advice}"]
    return lines
