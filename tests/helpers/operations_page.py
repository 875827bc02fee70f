"""The command lines of docs/operations.md: which a test executes, and why the others are not."""

from __future__ import annotations

import re
from typing import Final

from deploy_files import ROOT

PAGE: Final = ROOT / "docs" / "operations.md"
_FENCED: Final = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

NOT_EXECUTED: Final = {
    "# python3 -m venv /opt/penstock && /opt/penstock/bin/pip install --constraint requirements/dev.txt .": (
        "test_container.py runs the same line of the Dockerfile, in a chroot"
    ),
    "$ docker build -f deploy/container/Dockerfile -t penstock .": (
        "no Docker on a test machine; test_container.py runs the steps of the file in a chroot"
    ),
    "$ docker run --detach --stop-timeout 180 --publish 127.0.0.1:9092:9092 --volume penstock:/var/lib/penstock "
    "--env PENSTOCK_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:9092 penstock": (
        "no Docker on a test machine; test_container.py starts what the image starts"
    ),
    "$ export CLUSTER_SECRET=$(head -c 24 /dev/urandom | base64)": "the variable is for the line below it",
    "$ docker compose --file deploy/compose/compose.yaml up --build --detach": (
        "no Docker on a test machine; test_compose.py reads the nodes of the file"
    ),
    "$ helm install streams deploy/helm/penstock --set cluster.id=4L6g3nShT-eMCtK--X86sw "
    "--set image.repository=registry.example.org/penstock": (
        "no Kubernetes on a test machine; test_chart.py renders the values, test_pods.py runs the pods"
    ),
    "$ helm upgrade streams deploy/helm/penstock --reuse-values --set image.tag=0.1.1": (
        "no Kubernetes on a test machine; test_chart.py renders the values"
    ),
    "$ helm upgrade streams deploy/helm/penstock --reuse-values --set brokers.count=5": (
        "no Kubernetes on a test machine; test_chart.py renders the values"
    ),
}
"""Each line of a `console` block that no test executes, and the reason."""


def procedures(page: str) -> dict[str, list[str]]:
    """The `sh` blocks of each section, by its heading: test_operations.py executes all of them."""
    found: dict[str, list[str]] = {}
    for section in page.split("\n## ")[1:]:
        heading = section.partition("\n")[0]
        found[heading] = [text for language, text in _FENCED.findall(section) if language == "sh"]
    return found


def console_lines(page: str) -> list[str]:
    """The command lines of `console` blocks, each with its prompt and without line breaks."""
    lines = []
    for language, text in _FENCED.findall(page):
        if language == "console":
            lines += re.sub(r"\\\n\s*", "", text).splitlines()
    return lines


def installation(page: str) -> list[str]:
    """What root types, without the prompt: test_operations.py executes all of it."""
    return [line[2:] for line in console_lines(page) if line.startswith("# ") and line not in NOT_EXECUTED]


def unexplained(page: str) -> list[str]:
    """Blocks and lines that no test executes and for which there is no reason, and reasons for lines that are gone."""
    lines = console_lines(page)
    odd = [text for language, text in _FENCED.findall(page) if language not in ("sh", "console")]
    odd += [line for line in lines if not line.startswith("# ") and line not in NOT_EXECUTED]
    return odd + sorted(NOT_EXECUTED.keys() - set(lines))
