"""Write the methods of client/admin: one for each operation of the HTTP administration (`make docs`).

Both clients come from the table of operations, as the routes and the OpenAPI document do.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from penstock.broker.admin.operation import Operation
from penstock.broker.admin.operations import OPERATIONS
from penstock.broker.admin.path_parameters import PATH_PARAMETERS, names_in

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "client" / "admin"
_WORD = re.compile(r"(?<!^)(?=[A-Z])")


def main() -> None:
    """Write both modules."""
    for name in ("async_admin.py", "blocking_admin.py"):
        (FOLDER / name).write_text(render(name))
        sys.stdout.write(f"client/admin/{name}\n")


def render(name: str) -> str:
    """The text of one of the two modules."""
    is_async = name.startswith("async")
    imports: defaultdict[str, set[str]] = defaultdict(set)
    methods = [_method(operation, imports, is_async=is_async) for operation in OPERATIONS if not operation.takes_stream]
    kind, iterator = ("Async", "AsyncIterator") if is_async else ("Blocking", "Iterator")
    rest = "".join(
        f"from ...protocol.rest.{module} import {', '.join(sorted(classes))}\n"
        for module, classes in sorted(imports.items())
    )
    body = "\n\n".join(methods)
    uses_iterator = f"from collections.abc import {iterator}\n" if f"{iterator}[" in body else ""
    uses_none = "from types import NoneType\n" if "NoneType" in body else ""
    title = "asynchronous" if is_async else "blocking"
    source = (
        f'"""The {title} client of the HTTP administration: one method for each operation.\n\n'
        'Written by `make docs` from the table of operations.\n"""\n\n'
        f"from __future__ import annotations\n\n{uses_iterator}{uses_none}\n{rest}"
        f"from .{'async' if is_async else 'blocking'}_transport import {kind}Transport\n\n\n"
        f"class {'AsyncAdmin' if is_async else 'Admin'}({kind}Transport):\n"
        '    """Every method raises AdminProblem when the node refuses, AdminUnreachable when no node answers."""\n\n'
        f"{body}\n"
    )
    return _formatted(source)


def _method(operation: Operation, imports: defaultdict[str, set[str]], *, is_async: bool) -> str:
    parameters = [name for name in names_in(operation.path) if name != "cluster_id"]
    signature = ["self", *(f"{name}: {PATH_PARAMETERS[name].type.__name__}" for name in parameters)]
    if operation.body is not None:
        optional = " | None = None" if operation.is_body_optional else ""
        signature.append(f"body: {_named(operation.body, imports)}{optional}")
    query = () if operation.query is None else msgspec.structs.fields(operation.query)
    if query:
        signature.append("*")
        signature += [
            f"{field.name}: {_optional(field.type, imports)}{'' if field.required else ' = None'}" for field in query
        ]
    given = "{" + ", ".join(f'"{name}": {name}' for name in parameters) + "}"
    wait = "await " if is_async else ""
    if "{cluster_id}" in operation.path:
        given = given.replace("{", f'{{"cluster_id": {wait}self.cluster_id(), ', 1).replace(", }", "}")
    asked = "{" + ", ".join(f'"{field.encode_name}": {field.name}' for field in query) + "}"
    body = "body" if operation.body is not None else "None"
    name = _WORD.sub("_", operation.name).lower()
    target = f'"{operation.method}", "{operation.path}", {given}, {asked}, {body}'
    if operation.is_stream:
        iterator = "AsyncIterator" if is_async else "Iterator"
        assert "cluster_id" not in operation.path, "a stream is of this node"
        return (
            f"    def {name}({', '.join(signature)}) -> {iterator}[bytes]:\n"
            f'        """{operation.summary}; line by line."""\n'
            f"        return self.stream({target})\n"
        )
    answer = _answer(operation, imports)
    others = "".join(f"{status}: {_named(one, imports)}, " for status, one in operation.other_statuses.items())
    more = f", {{{others}}}" if others else ""
    returned = "None" if answer == "NoneType" else answer
    return (
        f"    {'async ' if is_async else ''}def {name}({', '.join(signature)}) -> {returned}:\n"
        f'        """{operation.summary}."""\n'
        f"        return {wait}self.ask({target}, {answer}{more})\n"
    )


def _answer(operation: Operation, imports: defaultdict[str, set[str]]) -> str:
    if operation.answer is not None:
        return _named(operation.answer, imports)
    return "bytes" if operation.method == "GET" else "NoneType"


def _optional(one: Any, imports: defaultdict[str, set[str]]) -> str:
    named = _named(one, imports)
    return named if "None" in named else f"{named} | None"


def _named(one: Any, imports: defaultdict[str, set[str]]) -> str:
    """The type as an annotation; what it needs is imported."""
    if one is type(None):
        return "None"
    origin = get_origin(one)
    if origin is Annotated:
        return _named(get_args(one)[0], imports)
    if origin in (Union, UnionType):
        return " | ".join(_named(part, imports) for part in get_args(one))
    if origin is Literal:
        return "str"
    if origin is not None:
        return f"{origin.__name__}[{', '.join(_named(part, imports) for part in get_args(one))}]"
    if one.__module__.startswith("penstock.protocol.rest."):
        imports[one.__module__.removeprefix("penstock.protocol.rest.")].add(one.__name__)
    return str(one.__name__)


def _formatted(source: str) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    for command in (["check", "--fix", "--select", "I,F401", "--quiet"], ["format", "--quiet"]):
        source = subprocess.run(
            [ruff, *command, "--stdin-filename", "client/admin/generated.py", "-"],
            input=source,
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        ).stdout
    return source


if __name__ == "__main__":
    main()
