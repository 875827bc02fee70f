"""The commands of the metadata shell: words in, lines out. Paths are those of `image_tree.py`, with `*`, `?` and `[…]`.

Kafka: `MetadataShell`, `MetadataNode`.

Paths that begin with a name below `/image` may leave that out, and a value may be followed by `data`, as in Kafka's
shell of before 3.5: `/topics/byName/foo/0/data` is `/image/topics/byName/foo/0`.
"""

import shlex
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from msgspec import Struct

from .tree import Folder, Leaf, Node

_GLOB: Final = frozenset("*?[")
_INDENT: Final = "  "
_VALUE: Final = "data"


class ExplorerError(Exception):
    """A command cannot be done as it was given. The message is one sentence."""


class _Found(NamedTuple):
    path: tuple[str, ...]
    node: Node

    @property
    def text(self) -> str:
        return "/" + "/".join(self.path)


class _Command(Struct, frozen=True):
    run: Callable[["Explorer", Sequence[str]], Iterator[str]]
    arguments: str
    help: str
    min_arguments: int = 0
    max_arguments: int | None = None


class Explorer:
    """A tree, and the folder in which one stands."""

    def __init__(self, root: Folder) -> None:
        self._root = root
        self._place: tuple[str, ...] = ()
        self.is_done = False
        """`exit` was said."""

    def run_line(self, line: str) -> Iterator[str]:
        """Do what a line says. Raises ExplorerError."""
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise ExplorerError(f"The line cannot be read: {error}.") from error
        return self.run(words) if words else iter(())

    def run(self, words: Sequence[str]) -> Iterator[str]:
        """Do a command and yield its lines. Raises ExplorerError, perhaps after some lines."""
        name, *arguments = words
        command = COMMANDS.get(name)
        if command is None:
            raise ExplorerError(f"There is no command {name}; help lists those there are.")
        if len(arguments) < command.min_arguments:
            raise ExplorerError(f"{name} needs a path: {name} {command.arguments}.")
        if command.max_arguments is not None and len(arguments) > command.max_arguments:
            raise ExplorerError(f"{name} takes no more than this: {name} {command.arguments}".rstrip() + ".")
        return command.run(self, arguments)

    def completions(self, line: str) -> list[str]:
        """Return what the last word of a line may become."""
        before, _, word = line.rpartition(" ")
        if not before.strip():
            return sorted(name for name in COMMANDS if name.startswith(word))
        if before.split()[0] == "man":
            return sorted(name for name in COMMANDS if name.startswith(word))
        start, slash, name = word.rpartition("/")
        found = self._find(start + slash or ".")
        if len(found) != 1 or not isinstance(found[0].node, Folder):
            return []
        folder = found[0].node
        return [
            f"{start}{slash}{child}{'/' if isinstance(folder.child(child), Folder) else ''}"
            for child in folder.names()
            if child.startswith(name)
        ]

    # Commands.

    def _ls(self, arguments: Sequence[str]) -> Iterator[str]:
        found = self._all(arguments or ["."])
        for one in found:
            if isinstance(one.node, Leaf):
                yield one.path[-1]
        is_titled = len(found) > 1
        for number, one in enumerate(one for one in found if isinstance(one.node, Folder)):
            assert isinstance(one.node, Folder)
            if is_titled:
                if number or len(found) > sum(isinstance(other.node, Folder) for other in found):
                    yield ""
                yield f"{one.text}:"
            yield from one.node.names()

    def _cat(self, arguments: Sequence[str]) -> Iterator[str]:
        for one in self._all(arguments):
            if isinstance(one.node, Folder):
                raise ExplorerError(f"{one.text} is a folder.")
            yield one.node.text

    def _cd(self, arguments: Sequence[str]) -> Iterator[str]:
        found = self._all(arguments or ["/"])
        if len(found) != 1 or not isinstance(found[0].node, Folder):
            raise ExplorerError(f"{arguments[0]} is not one folder.")
        self._place = found[0].path
        return iter(())

    def _pwd(self, _: Sequence[str]) -> Iterator[str]:
        yield "/" + "/".join(self._place)

    def _find_below(self, arguments: Sequence[str]) -> Iterator[str]:
        for one in self._all(arguments or ["."]):
            yield from (found.text for found in _walk(one))

    def _tree(self, arguments: Sequence[str]) -> Iterator[str]:
        for one in self._all(arguments or ["."]):
            for found in _walk(one):
                indent = _INDENT * (len(found.path) - len(one.path))
                name = found.path[-1] if found.path else "/"
                yield f"{indent}{name}:" if isinstance(found.node, Folder) else f"{indent}{name}: {found.node.text}"

    def _help(self, _: Sequence[str]) -> Iterator[str]:
        width = max(len(f"{name} {command.arguments}") for name, command in COMMANDS.items())
        for name, command in COMMANDS.items():
            yield f"{name} {command.arguments}".ljust(width) + f"  {command.help}"

    def _man(self, arguments: Sequence[str]) -> Iterator[str]:
        command = COMMANDS.get(arguments[0])
        if command is None:
            raise ExplorerError(f"There is no command {arguments[0]}; help lists those there are.")
        yield f"{arguments[0]} {command.arguments}".rstrip()
        yield f"{_INDENT}{command.help}"

    def _exit(self, _: Sequence[str]) -> Iterator[str]:
        self.is_done = True
        return iter(())

    # Paths.

    def _all(self, paths: Sequence[str]) -> list[_Found]:
        found: list[_Found] = []
        for path in paths:
            matches = self._find(path)
            if not matches:
                raise ExplorerError(f"There is no {path} here.")
            found += matches
        return found

    def _find(self, path: str) -> list[_Found]:
        places = [_Found((), self._root)]
        if not path.startswith("/"):
            places = self._step(places, self._place)
        return self._step(places, [part for part in path.split("/") if part])

    def _step(self, places: list[_Found], parts: Sequence[str]) -> list[_Found]:
        for part in parts:
            places = [found for place in places for found in self._children(place, part)]
        return places

    def _children(self, place: _Found, part: str) -> Iterator[_Found]:
        if part == ".":
            yield place
            return
        if part == "..":
            yield from self._step([_Found((), self._root)], place.path[:-1])
            return
        if isinstance(place.node, Leaf):
            if part == _VALUE:
                yield place
            return
        if _GLOB.isdisjoint(part):
            child = place.node.child(part)
            if child is not None:
                yield _Found((*place.path, part), child)
            elif not place.path:
                image = self._root.child("image")
                assert image is not None
                yield from self._children(_Found(("image",), image), part)
            return
        for name in place.node.names():
            child = place.node.child(name)
            if child is not None and fnmatchcase(name, part):
                yield _Found((*place.path, name), child)


def _walk(start: _Found) -> Iterator[_Found]:
    yield start
    if isinstance(start.node, Folder):
        for name in start.node.names():
            child = start.node.child(name)
            assert child is not None, f"{name} is listed in {start.text}"
            yield from _walk(_Found((*start.path, name), child))


COMMANDS: Final = {
    "ls": _Command(Explorer._ls, "[PATH…]", "List what is in a folder."),
    "cat": _Command(Explorer._cat, "PATH…", "Print a value.", min_arguments=1),
    "cd": _Command(Explorer._cd, "[PATH]", "Go to a folder.", max_arguments=1),
    "pwd": _Command(Explorer._pwd, "", "Print the folder that one is in.", max_arguments=0),
    "find": _Command(Explorer._find_below, "[PATH…]", "List everything below a folder."),
    "tree": _Command(Explorer._tree, "[PATH…]", "Print everything below a folder, with its values."),
    "man": _Command(Explorer._man, "COMMAND", "Say what a command does.", min_arguments=1, max_arguments=1),
    "help": _Command(Explorer._help, "", "List the commands.", max_arguments=0),
    "exit": _Command(Explorer._exit, "", "Leave; so does the end of the input.", max_arguments=0),
}
