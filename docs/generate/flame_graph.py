"""Draw where a node spends its time: `python docs/generate/flame_graph.py NAME < samples` writes docs/flames/NAME.svg.

Samples are stacks as py-spy records them (`py-spy record --native --function --format raw`). What is above the event
loop, threads that wait and the wait for events are left out: what is drawn is the work of the loop. Frames of the same
function beneath the same caller are one; the width is the share of the samples, the tooltip says how many.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "flames"
LOOP = "uv_run"
WAIT = "epoll_pwait"
WIDTH, ROW, HEAD, CHARACTER = 1200, 17, 24, 6.6
LEAST_WIDTH = 1.0
# One frame of py-spy: a name, and in brackets a file with a line, or a library.
FRAME = re.compile(r"(?P<name>.+) \((?P<file>[^()]*?)(:\d+)?\)")
# Steps of the C code between two functions of which each caller has a hundred.
NOISE = ("Py_DECREF", "Py_XDECREF", "loop_run_in_context", "0x", "__pyx", "_Py", "Py", "loop_", "UV", "uv__")
PACKAGES = ("protocol", "storage", "quorum", "broker")
OURS, PYTHON, BELOW = "#f2a65a", "#f2d48f", "#a9c1d9"


@dataclass(slots=True)
class Frame:
    name: str
    colour: str
    count: int = 0
    callees: dict[str, Frame] = field(default_factory=dict)


def main() -> None:
    """Write the picture."""
    output = FOLDER / f"{sys.argv[1]}.svg"
    output.write_text(render(sys.argv[1], sys.stdin))
    sys.stdout.write(f"{output}: {output.stat().st_size // 1024} KiB\n")


def render(title: str, lines: Iterable[str]) -> str:
    """The picture of folded stacks, one a line with its count behind it."""
    root = Frame("event loop", BELOW)
    for line in lines:
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")
        if not any(frame.startswith(LOOP) for frame in frames) or frames[-1].startswith(WAIT):
            continue
        add(root, shown(frames), int(count))
    height = HEAD + ROW * depth(root)
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace" '
            'font-size="11">',
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
            f'<text x="4" y="15">{escape(title)}: {root.count} samples; orange is Penstock, yellow other Python code, '
            "blue C and the kernel</text>",
            *draw(root, 0.0, WIDTH / max(root.count, 1), HEAD, root.count),
            "</svg>\n",
        )
    )


def shown(frames: list[str]) -> Iterator[tuple[str, str]]:
    """(name, colour) of the frames beneath the event loop that say something."""
    beneath = False
    for frame in frames:
        match = FRAME.fullmatch(frame)
        if match is None:
            continue
        name, file = match["name"], match["file"]
        if beneath and not name.startswith(NOISE):
            parts = file.split("/")
            package = next((index for index, part in enumerate(parts) if part in PACKAGES), None)
            if package is not None:
                yield f"{name} ({'/'.join(parts[package:])})", OURS
            else:
                yield name, PYTHON if file.endswith(".py") or name == "<lambda>" else BELOW
        beneath = beneath or name.startswith(LOOP)


def add(root: Frame, names: Iterable[tuple[str, str]], count: int) -> None:
    root.count += count
    frame = root
    for name, colour in names:
        frame = frame.callees.setdefault(name, Frame(name, colour))
        frame.count += count


def depth(frame: Frame) -> int:
    return 1 + max((depth(callee) for callee in frame.callees.values()), default=0)


def draw(frame: Frame, x: float, scale: float, y: int, total: int) -> Iterator[str]:
    """The frame, and beneath it what it called, widest first; what would be narrower than a pixel is left out."""
    width = frame.count * scale
    if width < LEAST_WIDTH:
        return
    letters = int((width - 4) / CHARACTER)
    text = frame.name if len(frame.name) <= letters else frame.name[: max(letters - 1, 0)] + "…"
    label = f'<text x="{x + 3:.1f}" y="{y + 12}">{escape(text)}</text>' if letters > 2 else ""
    yield (
        f"<g><title>{escape(frame.name)}: {frame.count / max(total, 1):.1%}</title>"
        f'<rect x="{x:.1f}" y="{y}" width="{max(width - 0.5, 0.5):.1f}" height="{ROW - 1}" fill="{frame.colour}"/>'
        f"{label}</g>"
    )
    for callee in sorted(frame.callees.values(), key=lambda callee: -callee.count):
        yield from draw(callee, x, scale, y + ROW, total)
        x += callee.count * scale


if __name__ == "__main__":
    main()
