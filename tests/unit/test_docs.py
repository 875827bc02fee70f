"""Pages that are written by a program say what the program would write now, and promises name tests that there are."""

import ast
import importlib.util
import re
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "testing-your-application.md"


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


def test_page_of_the_metrics_is_current() -> None:
    module = generator("metrics")
    assert module.OUTPUT.read_text() == module.render(), "run `make docs`"


def test_every_promise_names_tests_that_there_are() -> None:
    page = (ROOT / "docs" / "guarantees.md").read_text()
    files = list((ROOT / "tests").rglob("test_*.py"))
    functions = {name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)}
    assert set(re.findall(r"`(test_\w+)`", page)) <= functions
    assert set(re.findall(r"(test_\w+\.py)`", page)) <= {file.name for file in files}
    assert set(re.findall(r"`(tests/[\w/]+\.py)`", page)) <= {file.relative_to(ROOT).as_posix() for file in files}


def test_first_test_of_the_readme_is_the_one_that_is_run() -> None:
    """`tests/integration/test_tutorial.py` runs the page's, and `make dist` from the built wheel."""
    block = next(one for one in README.read_text().split("```python\n")[1:] if one.startswith("# test_first.py"))
    assert f"```python\n{block.partition('```')[0]}```" in TUTORIAL.read_text()


def test_links_of_the_pages_lead_to_files_that_there_are() -> None:
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"


def test_files_name_the_classes_of_kafka_that_they_stand_for() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    table = page.split("## Kafka's class → here")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+) \| (.+) \| (.+\)) \|$", table, re.MULTILINE)
    assert len(rows) > 80
    missing = []
    for kafka, _, links in rows:
        docstrings = [_docstring(ROOT / path) for path in re.findall(r"\]\(\.\./(.*?)\)", links)]
        names = re.findall(r"[A-Za-z][\w.]+", kafka)
        missing += [f"{name}: {links}" for name in names if not any(f"`{name}`" in text for text in docstrings)]
    assert not missing, "name Kafka's class in the docstring of the file:\n" + "\n".join(missing)


def _docstring(path: Path) -> str:
    file = path / "__init__.py" if path.is_dir() else path
    return ast.get_docstring(ast.parse(file.read_text())) or ""
