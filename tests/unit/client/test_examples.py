"""Examples are copied: each is one file that needs nothing of this package."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import penstock.client.examples

PROGRAMS = [path for path in Path(penstock.client.examples.__file__).parent.glob("*.py") if path.stem != "__init__"]


def test_there_are_examples() -> None:
    assert len(PROGRAMS) == 4


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_example_imports_confluent_kafka_and_the_standard_library(program: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(program.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            imported.add((node.module or "").partition(".")[0])
    assert imported - sys.stdlib_module_names == {"confluent_kafka"}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_page_shows_the_example(program: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "use-cases.md"
    assert f"(../client/examples/{program.name})" in page.read_text()
