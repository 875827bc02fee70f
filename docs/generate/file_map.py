"""Write docs/files.md: every module with the first sentence of its docstring (`make docs`)."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "docs" / "files.md"
PACKAGES = ("protocol", "storage", "quorum", "broker", "client", "local", "chaos", "bench", "pipeline")
HEAD = """# Map of the files

Written by `make docs` from the first sentence of each module. Pure modules (no socket, file, clock, random generator or
task, held by an import contract) are those in the rooms that the contract "pure rooms" in `pyproject.toml`
names, and in every folder `rules/`.
"""


def main() -> None:
    """Write the map."""
    OUTPUT.write_text(render())
    sys.stdout.write(f"{OUTPUT.relative_to(ROOT)}\n")


def render() -> str:
    """The text of the map."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = sorted(Path(line) for line in listed.splitlines() if line.split("/")[0] in PACKAGES and "/" in line)
    parts = [HEAD]
    for folder in sorted({file.parent for file in files}, key=_place):
        parts.append(f"\n## {folder}/\n\n{_first_sentence(folder / '__init__.py')}\n\n")
        parts.append("| module | what it is |\n|---|---|\n")
        for file in files:
            if file.parent == folder and file.name != "__init__.py":
                parts.append(f"| [{file.name}](../{file}) | {_first_sentence(file)} |\n")
    return "".join(parts)


def _place(folder: Path) -> tuple[int, str]:
    return PACKAGES.index(folder.parts[0]), str(folder)


def _first_sentence(file: Path) -> str:
    text = ast.get_docstring(ast.parse((ROOT / file).read_text())) or ""
    paragraph = " ".join(text.split("\n\n")[0].split())
    sentence, stop, _ = paragraph.partition(". ")
    return (sentence + stop.strip()).replace("|", "\\|")


if __name__ == "__main__":
    main()
