"""`penstock metadata …`: the metadata of a node at an offset, read from its disk."""

import sys
from collections.abc import Iterator

import click

from ... import __version__
from ...storage.disk.files import DiskFiles
from .rules.explorer import Explorer, ExplorerError
from .rules.image_tree import image_tree
from .stored_metadata import MetadataUnreadable, StoredMetadata, open_folder, open_snapshot

PROMPT = ">> "


@click.group()
def metadata() -> None:
    """Look at the metadata that lies on a node's disk."""


@metadata.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--directory",
    "-d",
    type=click.Path(),
    metavar="FOLDER",
    help="A node's metadata: its (metadata.)log.dir, or the folder __cluster_metadata-0 in it.",
)
@click.option("--snapshot", "-s", type=click.Path(), metavar="FILE", help="A single snapshot.")
@click.option(
    "--offset", "-o", type=click.IntRange(min=0), help="Show the metadata after this entry; after the last by default."
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def shell(directory: str | None, snapshot: str | None, offset: int | None, command: tuple[str, ...]) -> None:
    """Explore the cluster's metadata as a tree: ls, cd, cat, find, tree, pwd, help.

    Works without the node and beside it, and never writes. With COMMAND it does that and ends. The tree is that of
    Apache Kafka's metadata shell:

        penstock metadata shell -d /var/lib/penstock cat /image/topics/byName/foo/0
    """
    try:
        stored = _open(directory, snapshot)
        explorer, greeting = _explorer(stored, offset)
    except MetadataUnreadable as error:
        raise click.ClickException(str(error)) from error
    if command:
        try:
            _print(explorer.run(command))
        except ExplorerError as error:
            raise click.ClickException(str(error)) from error
        return
    click.echo(greeting, err=True)
    _prompt(explorer)


def _open(directory: str | None, snapshot: str | None) -> StoredMetadata:
    files = DiskFiles()
    if directory is not None and snapshot is None:
        return open_folder(files, directory)
    if snapshot is not None and directory is None:
        return open_snapshot(files, snapshot)
    raise click.UsageError("Give either --directory or --snapshot.")


def _explorer(stored: StoredMetadata, offset: int | None) -> tuple[Explorer, str]:
    shown = stored.image_at(offset)
    image = shown.image
    greeting = f"Metadata at offset {image.offset} of epoch {image.epoch}, from {stored.folder}."
    if shown.offset > image.offset:
        greeting += f" The entries behind it, up to offset {shown.offset}, are of a change that has not ended there."
    if shown.offset >= stored.committed_end:
        greeting += f" Known to be committed are the offsets below {stored.committed_end}."
    local = {
        "committedEndOffset": str(stored.committed_end),
        "directory": stored.folder,
        "lastOffset": str(stored.last_offset),
        "snapshots": ", ".join(f"{end_offset}-{epoch}" for end_offset, epoch in stored.snapshots),
        "version": __version__,
    }
    return Explorer(image_tree(image, local)), greeting


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        click.echo(line)


def _prompt(explorer: Explorer) -> None:
    """Until `exit` or the end of the input."""
    if sys.stdin.isatty():
        _complete_with(explorer)
    while not explorer.is_done:
        try:
            line = input(PROMPT if sys.stdin.isatty() else "")
        except EOFError:
            return
        except KeyboardInterrupt:
            click.echo("^C")
            continue
        try:
            _print(explorer.run_line(line))
        except ExplorerError as error:
            click.echo(str(error), err=True)


def _complete_with(explorer: Explorer) -> None:
    try:
        import readline
    except ImportError:
        # A Python without it has a prompt that does not complete.
        return

    def complete(_word: str, number: int) -> str | None:
        found = explorer.completions(readline.get_line_buffer()[: readline.get_endidx()])
        return found[number] if number < len(found) else None

    readline.set_completer_delims(" ")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")
