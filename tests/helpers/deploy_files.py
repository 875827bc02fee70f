"""The files of `deploy/`, and the nodes that they would start."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from penstock.broker.configuration.node_config import NodeConfig, load
from penstock.broker.configuration.properties import merge_properties

ROOT: Final = Path(__file__).parents[2]
DEPLOY: Final = ROOT / "deploy"
ENTRYPOINT: Final = DEPLOY / "container" / "entrypoint.sh"
_SHOW_ENVIRONMENT: Final = '#!/bin/sh\nenv\necho "ARGUMENTS=$*"\n'


def enter(folder: Path, environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the entry point of the container with a `penstock` that only prints what it is given."""
    program = folder / "penstock"
    program.write_text(_SHOW_ENVIRONMENT)
    program.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["/bin/sh", str(ENTRYPOINT), *arguments],
        env={"PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def node_started_by(folder: Path, environment: Mapping[str, str], file_text: str | None = None) -> NodeConfig:
    """Return the configuration that a node of the container has with this environment and this file of properties."""
    entered = enter(folder, environment)
    assert entered.returncode == 0, entered.stderr
    told = dict(line.split("=", 1) for line in entered.stdout.splitlines() if "=" in line)
    return load(merge_properties(file_text=file_text, environment=told))


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Put variables in as Kubernetes does, `$(NAME)`."""
    return re.sub(r"\$\((\w+)\)", lambda match: variables[match[1]], text)


def find(manifests: list[dict[str, Any]], kind: str, suffix: str = "") -> dict[str, Any]:
    """Return the only manifest of a kind whose name ends so."""
    (found,) = (one for one in manifests if one["kind"] == kind and one["metadata"]["name"].endswith(suffix))
    return found
