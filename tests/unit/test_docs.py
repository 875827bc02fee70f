"""Pages that are written by a program say what the program would write now."""

import importlib.util
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
