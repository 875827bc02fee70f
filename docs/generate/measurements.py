"""Write docs/measurements/README.md: the pages, and how every goal fared in each run that was kept (`make docs`)."""

from __future__ import annotations

import sys
from pathlib import Path

from penstock.bench.report import goal_verdict, verdicts
from penstock.bench.results import Results

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "measurements"
OUTPUT = FOLDER / "README.md"
HEAD = """# Measurements

Written by `make docs`. Results of `penstock bench` are kept as JSON (each round), Markdown and SVG; runs of tests
with many kills, faults or seeds as pages. Each names the revision that it measured; those before 2026-11-23 say only
the day. Figures are ratios to Apache Kafka, or Penstock's own where the goal has no ×. Compare within one run only:
the machines differ. In the pictures right is better, and the figure beside a dot is how many times. To keep the folder
small, a new run of the same cells replaces the JSON and SVG of the one before last.

| page | what |
|---|---|
"""


def main() -> None:
    """Write the page."""
    OUTPUT.write_text(render())
    sys.stdout.write(f"{OUTPUT.relative_to(ROOT)}\n")


def render() -> str:
    """The text of the page."""
    pages = [page for page in sorted(FOLDER.glob("*.md")) if page != OUTPUT]
    parts = [
        HEAD,
        *(f"| [{page.name}]({page.name}) | {page.read_text().splitlines()[0].lstrip('# ')} |\n" for page in pages),
    ]
    runs = [(path, Results.from_json(path.read_text())) for path in sorted(FOLDER.glob("*.json"))]
    trend: dict[tuple[str, str], list[str]] = {}
    for path, results in sorted(runs, key=lambda run: run[1].started):
        revision = results.machine.get("revision")
        name = f"[{results.started[:10]}]({path.with_suffix('.md').name}){f' {revision[:7]}' if revision else ''}"
        for verdict in verdicts(results):
            measured, holds = goal_verdict(verdict)
            trend.setdefault((verdict.title, verdict.goal), []).append(f"{name}: {measured}, {holds}")
    parts.append("\n## Every goal\n\n| goal | | runs, oldest first: measured, holds |\n|---|---|---|\n")
    parts.extend(f"| {title} | {goal} | {'<br>'.join(found)} |\n" for (title, goal), found in sorted(trend.items()))
    return "".join(parts)


if __name__ == "__main__":
    main()
