"""Draw docs/packages.svg: the packages, their sizes, and who imports whom (`make docs`).

The picture is computed from the code by grimp, the library behind the import contracts, so it cannot drift from it.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from html import escape
from pathlib import Path
from typing import NamedTuple

import grimp

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "docs" / "packages.svg"

# From the reader's side down to the wire; the import contracts in pyproject.toml hold this order.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("cli",),
    ("bench", "pipeline"),
    ("chaos",),
    ("broker", "local"),
    ("quorum",),
    ("storage", "client"),
    ("protocol",),
)
WIDTH, BOX_WIDTH, BOX_HEIGHT, ROW, TOP = 1000, 400, 62, 116, 20


class Box(NamedTuple):
    """Where one package stands in the picture, in pixels from the upper left corner."""

    x: int
    y: int

    @property
    def center(self) -> int:
        return self.x + BOX_WIDTH // 2


def main() -> None:
    """Write the picture."""
    OUTPUT.write_text(render(count_imports()))
    sys.stdout.write(f"{OUTPUT.relative_to(ROOT)}\n")


def count_imports() -> Counter[tuple[str, str]]:
    """Imports between packages: (importer, imported) → number of importing module pairs."""
    graph = grimp.build_graph("penstock")
    edges: Counter[tuple[str, str]] = Counter()
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            pair = _package(importer), _package(imported)
            if pair[0] != pair[1] and all(pair):
                edges[pair] += 1
    return edges


def render(edges: Counter[tuple[str, str]]) -> str:
    """The SVG text for these imports."""
    boxes = _place()
    height = TOP * 2 + ROW * (len(LAYERS) - 1) + BOX_HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="11" markerHeight="11" '
        'markerUnits="userSpaceOnUse" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#5b6b7b"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    drawn = sorted(pair for pair in edges if pair[0] in boxes and pair[1] in boxes)
    for lane, (importer, imported) in enumerate(drawn):
        parts.append(_arrow(boxes[importer], boxes[imported], edges[importer, imported], lane))
    parts.extend(_box(name, boxes[name]) for name in boxes)
    parts.append("</svg>\n")
    return "\n".join(parts)


def _package(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def _place() -> dict[str, Box]:
    boxes: dict[str, Box] = {}
    for row, names in enumerate(LAYERS):
        gap = (WIDTH - BOX_WIDTH * len(names)) // (len(names) + 1)
        for column, name in enumerate(names):
            boxes[name] = Box(gap + column * (BOX_WIDTH + gap), TOP + row * ROW)
    return boxes


def _box(name: str, box: Box) -> str:
    folder = ROOT / name
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [ROOT / f"{name}.py"]
    lines = sum(len(file.read_text().splitlines()) for file in files)
    purpose = _first_sentence(files[0] if len(files) == 1 else folder / "__init__.py")
    return (
        f'<rect x="{box.x}" y="{box.y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="7" fill="#eef4fa" '
        'stroke="#33618f"/>'
        f'<text x="{box.x + 12}" y="{box.y + 22}" font-size="15" font-weight="bold" fill="#173a5e">{name}</text>'
        f'<text x="{box.x + BOX_WIDTH - 12}" y="{box.y + 22}" font-size="11" text-anchor="end" fill="#5b6b7b">'
        f"{len(files)} module{'s' * (len(files) > 1)}, {lines:,} lines</text>"
        f'<text x="{box.x + 12}" y="{box.y + 45}" font-size="10" fill="#333333">{escape(purpose)}</text>'
    )


def _first_sentence(file: Path) -> str:
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    sentence = text.split("\n\n")[0].split(". ")[0].replace("\n", " ")
    return sentence if len(sentence) <= 68 else f"{sentence[:66]}…"


def _arrow(start: Box, end: Box, count: int, lane: int) -> str:
    # Neighbouring layers get a straight arrow. A longer one leaves at the side that its target is on and swings around
    # the boxes between.
    skipped = (end.y - start.y) // ROW - 1
    shift = (lane % 5 - 2) * 18
    if skipped < 1:
        x1, y1, x2, y2 = start.center + shift, start.y + BOX_HEIGHT, end.center + shift, end.y - 2
        path, mark_x, mark_y = f"M{x1},{y1} L{x2},{y2}", (x1 + x2) // 2, (y1 + y2) // 2
    else:
        towards = end.center - start.center or (1 if lane % 2 else -1)
        side = 1 if towards > 0 else -1
        x1, y1 = (start.x + BOX_WIDTH if side > 0 else start.x), start.y + BOX_HEIGHT // 2 + shift // 3
        x2, y2 = end.center + side * (BOX_WIDTH // 4) + shift, end.y - 2
        bend = max(x1, x2) + 25 + skipped * 22 if side > 0 else min(x1, x2) - 25 - skipped * 22
        path = f"M{x1},{y1} C{bend},{y1 + 20} {bend},{y2 - 60} {x2},{y2}"
        mark_x, mark_y = (x1 + 6 * bend + x2) // 8, (y1 + y2) // 2
    width = 1 + min(count, 40) / 16
    return (
        f'<path d="{path}" fill="none" stroke="#5b6b7b" stroke-width="{width:.1f}" marker-end="url(#tip)" '
        'opacity="0.75"/>'
        f'<text x="{mark_x + 4}" y="{mark_y}" font-size="10" fill="#5b6b7b">{count}</text>'
    )


if __name__ == "__main__":
    main()
