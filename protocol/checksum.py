"""CRC-32C, of records and of whatever else is to be found damaged.

Of the library `crc32c` only the extension is loaded: the package around it loads what its command line needs, too,
which is a twentieth of the start of a node.
"""

from __future__ import annotations

from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any, Final

_PACKAGE: Final = "crc32c"
_EXTENSION: Final = "crc32c._crc32c"


def _load() -> Any:
    package = find_spec(_PACKAGE)
    spec = None if package is None else PathFinder.find_spec(_EXTENSION, package.submodule_search_locations)
    if spec is None or spec.loader is None:
        # Another release of the library, in other parts.
        import crc32c

        return crc32c
    extension = module_from_spec(spec)
    spec.loader.exec_module(extension)
    return extension


if TYPE_CHECKING:
    from crc32c import crc32c
else:
    crc32c = _load().crc32c

__all__ = ["crc32c"]
