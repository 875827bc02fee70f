"""The Helm chart as Helm's own engine renders it, and the containers of its pods."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml
from deploy_files import DEPLOY, ROOT, expand
from missing_tools import unavailable

from penstock.client.cached_programs import cache_folder

CHART: Final = DEPLOY / "helm" / "penstock"


@cache
def tools() -> Path:
    """The programs of requirements/chart.txt."""
    folder = cache_folder() / "chart-tools"
    listed = (ROOT / "requirements" / "chart.txt").read_text()
    installed = folder / "installed.txt"
    if not installed.exists() or installed.read_text() != listed:
        unavailable("Helm's engine is not installed (CI=true tests/install_tools.sh)")
    return folder / "bin"


def render(*values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What Helm makes of each of the values: manifests and lint, or an error."""
    asked = json.dumps([str(CHART), *values])
    renderer = ROOT / "tests" / "helpers" / "chart_renderer.py"
    rendered = subprocess.run(
        [tools() / "python", renderer], input=asked, capture_output=True, text=True, check=True, timeout=120
    )
    read: list[dict[str, Any]] = json.loads(rendered.stdout)
    return read


def manifests_of(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The manifests of one answer of `render`, as Kubernetes reads them."""
    texts: dict[str, str] = answer.get("manifests", {})
    assert texts, answer
    documents = [one for path, text in texts.items() if path.endswith(".yaml") for one in yaml.safe_load_all(text)]
    return [one for one in documents if one]


def containers(rendered: Sequence[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any], dict[str, str]]]:
    """Each pod's name, its container, and the environment that Kubernetes gives that; the secret is `s`."""
    for one in rendered:
        if one["kind"] != "StatefulSet":
            continue
        (container,) = one["spec"]["template"]["spec"]["containers"]
        for ordinal in range(one["spec"]["replicas"]):
            name = f"{one['metadata']['name']}-{ordinal}"
            known = {"POD_NAME": name, "HOST_IP": "10.9.8.7", "PENSTOCK_CLUSTER_SECRET": "s"}
            for variable in container["env"]:
                if "value" in variable:
                    known[variable["name"]] = expand(variable["value"], known)
            yield name, container, known
