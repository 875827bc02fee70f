"""Renders and lints a Helm chart, run with the Python of the chart's tools.

Reads `[folder, values, …]` as JSON, and prints for each of the values the manifests and what lint says, or the error.
"""

import json
import sys

from helm_python import errors
from helm_python.chart import Chart, lint


def answer(folder: str, values: dict[str, object]) -> dict[str, object]:
    try:
        with Chart.load(folder) as chart:
            manifests = chart.render(values, name="demo", namespace="streams")
    except errors.HelmError as error:
        return {"error": str(error)}
    return {"manifests": manifests, "lint": lint(folder, values, strict=True, kube_version="v1.33.0")}


folder, *all_values = json.load(sys.stdin)
json.dump([answer(folder, values) for values in all_values], sys.stdout)
