"""What `penstock up`, `penstock down` and the demo share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from ..client.terminal import say
from .cluster import LocalCluster
from .errors import ClusterError, NodeFailedError

_Command = TypeVar("_Command", bound=Callable[..., Any])

# Not the folder that `penstock start` takes by itself: a node would take `node-1` in it for a partition of `node`.
DEFAULT_FOLDER: Final = "penstock-cluster"

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def folder_option_with(default: str) -> Callable[[_Command], _Command]:
    """`--data DIR`."""
    return click.option(
        "--data",
        "folder",
        type=click.Path(file_okay=False, path_type=Path),
        default=default,
        show_default=True,
        help="Folder of the cluster: data, logs and properties of its nodes.",
    )


folder_option = folder_option_with(DEFAULT_FOLDER)


def attached(folder: Path) -> LocalCluster:
    """The cluster of that folder. Raises ClusterError, UnreadableRecordError."""
    cluster = LocalCluster.attach(folder)
    if cluster is None:
        raise ClusterError(f"no cluster has been started in {folder}; --data names another folder.")
    return cluster


@contextmanager
def sentences() -> Iterator[None]:
    """What goes wrong with a cluster is said in its own words, with exit status 1."""
    try:
        yield
    except NodeFailedError as error:
        if error.log_tail:
            # Before the sentence, which is what is read.
            say(f"The log of the node ends with\n{error.log_tail}")
        where = "" if error.log is None else f"; its log is {error.log}"
        raise click.ClickException(_capitalised(f"{error.sentence}{where}")) from error
    except ClusterError as error:
        raise click.ClickException(_capitalised(str(error))) from error


def _capitalised(message: str) -> str:
    return message[:1].upper() + message[1:]
