"""A function with a piece of its source replaced: for bugs that are one line."""

import __future__

import inspect
import textwrap
from collections.abc import Callable
from typing import Any


def edited(old: str, new: str) -> Callable[[Any], Any]:
    """For `Mutant.make`: compile the function anew with `old` replaced by `new`.

    `old` must stand once in its source, indented as if `def` began a line: a function that has changed is no mutant
    any more, and says so with an AssertionError.
    """

    def make(original: Any) -> Any:
        source = textwrap.dedent(inspect.getsource(original))
        assert source.count(old) == 1, f"{original.__qualname__} has not {old!r} once"
        names: dict[str, Any] = {}
        path = inspect.getsourcefile(original) or original.__qualname__
        flags = __future__.annotations.compiler_flag
        exec(compile(source.replace(old, new), path, "exec", flags), original.__globals__, names)
        return names[original.__name__]

    return make
