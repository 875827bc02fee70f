"""Pages that are written by a program say what the program would write now, and promises name tests that there are."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def generator(name: str) -> ModuleType:
    path = ROOT / "docs" / "generate" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"generate_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_protocol_support_is_current() -> None:
    module = generator("protocol_support")
    assert module.OUTPUT.read_text() == module.render(module.built_apis()), "run `make docs`"


def test_list_of_what_cannot_pass_yet_is_current() -> None:
    module = generator("not_yet")
    assert module.OUTPUT.read_text() == module.render(), "run `make docs`"


def test_map_of_the_files_is_current() -> None:
    module = generator("file_map")
    assert module.OUTPUT.read_text() == module.render(), "run `make docs`"


def test_index_of_the_measurements_is_current() -> None:
    module = generator("measurements")
    assert module.OUTPUT.read_text() == module.render(), "run `make docs`"


def test_every_promise_names_tests_that_there_are() -> None:
    page = (ROOT / "docs" / "guarantees.md").read_text()
    files = list((ROOT / "tests").rglob("test_*.py"))
    functions = {name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)}
    assert set(re.findall(r"`(test_\w+)`", page)) <= functions
    assert set(re.findall(r"(test_\w+\.py)`", page)) <= {file.name for file in files}
    assert set(re.findall(r"`(tests/[\w/]+\.py)`", page)) <= {file.relative_to(ROOT).as_posix() for file in files}


def test_links_of_the_pages_lead_to_files_that_there_are() -> None:
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"
