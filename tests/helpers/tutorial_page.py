"""The code of docs/testing-your-application.md: `python tests/helpers/tutorial_page.py FOLDER` writes it as files."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[2] / "docs" / "testing-your-application.md"
_BLOCK: Final = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def files() -> dict[str, str]:
    """By name, what each block holds; a block begins with the name of its file."""
    return dict(_BLOCK.findall(PAGE.read_text()))


def write(folder: Path) -> None:
    for name, text in files().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
