"""Write the Grafana dashboards (`make docs`): dashboards/*.json, checked in as they are loaded.

A dashboard is a list of rows, a row a list of panels, a panel its title, unit and queries. What the panels ask is in
docs/metrics.md and, of jobs of the pipeline, in docs/pipeline.md. `$datasource`, `$cluster` and `$instance` are
variables of every dashboard of nodes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from boards import clients, cluster, groups, node, pipeline, quorum, topics
from boards.rendering import render

FOLDER: Final = Path(__file__).resolve().parent / "dashboards"
DASHBOARDS: Final = tuple(board.DASHBOARD for board in (cluster, node, topics, groups, quorum, clients, pipeline))


def main() -> None:
    """Write all of them."""
    for dashboard in DASHBOARDS:
        path = FOLDER / f"{dashboard.name}.json"
        path.write_text(render(dashboard))
        sys.stdout.write(f"deploy/grafana/dashboards/{path.name}\n")


if __name__ == "__main__":
    main()
