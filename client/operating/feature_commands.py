"""`penstock features`: levels of features, looked at, raised and lowered, as kafka-features does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import click
import msgspec

from ...protocol.rest.features import Feature, FeatureList, FeatureUpdates
from ..terminal import print_json, print_table, say
from .admin_options import admin_options, check_quorum, json_option
from .feature_findings import raisable_levels

if TYPE_CHECKING:
    from ..admin import Admin

_dry_run = click.option("--dry-run", is_flag=True, help="Only check whether it could be done.")


@click.group()
def features() -> None:
    """Look at the levels of the cluster's features, and change them.

    A level decides what nodes write to disks and to each other: raise it when all nodes run the new version.
    """


@features.command()
@json_option
@admin_options
def describe(admin: Admin, as_json: bool) -> None:
    """Show finalized levels beside those that all nodes support."""
    found = admin.list_features()
    if as_json:
        print_json(msgspec.to_builtins(found))
        return
    print_table(("feature", "level", "supported"), [(one.name, one.level, _supported(one)) for one in found.features])
    for line in differences(found):
        say(line)


@features.command()
@click.argument("wanted", metavar="[NAME=LEVEL…]", nargs=-1)
@_dry_run
@json_option
@admin_options
def upgrade(admin: Admin, wanted: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Raise levels, all or none. Without a name: all to the highest that every node supports."""
    levels = parse_levels(wanted)
    check_quorum(admin)
    before = admin.list_features()
    if not wanted:
        levels = raisable_levels(before)
    _update(admin, before, levels, "upgrade", is_dry=dry_run, as_json=as_json)


@features.command()
@click.argument("wanted", metavar="NAME=LEVEL…", nargs=-1, required=True)
@click.option("--unsafe", is_flag=True, help="Although metadata may be lost, where the feature allows it.")
@_dry_run
@json_option
@admin_options
def downgrade(admin: Admin, wanted: tuple[str, ...], unsafe: bool, dry_run: bool, as_json: bool) -> None:
    """Lower levels, all or none. Level 0 switches a feature off."""
    levels = parse_levels(wanted)
    check_quorum(admin)
    kind: Literal["safe_downgrade", "unsafe_downgrade"] = "unsafe_downgrade" if unsafe else "safe_downgrade"
    _update(admin, admin.list_features(), levels, kind, is_dry=dry_run, as_json=as_json)


def parse_levels(texts: Sequence[str]) -> dict[str, int]:
    """Reads `NAME=LEVEL`, each name once. Raises UsageError."""
    levels: dict[str, int] = {}
    for text in texts:
        name, equals, level = text.partition("=")
        if not (name and equals and level.isascii() and level.isdecimal()):
            raise click.UsageError(f"{text!r} is not NAME=LEVEL, such as transaction.version=2.")
        if name in levels:
            raise click.UsageError(f"{name} is named twice.")
        levels[name] = int(level)
    return levels


def differences(found: FeatureList) -> list[str]:
    """A line for each node that supports other levels than all nodes do, and for controllers that have not told."""
    lines = []
    for feature in found.features:
        for node in feature.nodes:
            if (node.min_level, node.max_level) != (feature.min_level, feature.max_level):
                levels = _range(node.min_level, node.max_level)
                lines.append(f"{node.role.capitalize()} {node.node_id} supports {levels} of {feature.name}.")
    if found.unregistered_controllers:
        ids = ", ".join(map(str, found.unregistered_controllers))
        lines.append(f"Controllers that have not registered: {ids}. Until then no level can be raised.")
    return lines


def _update(
    admin: Admin,
    before: FeatureList,
    levels: Mapping[str, int],
    kind: Literal["upgrade", "safe_downgrade", "unsafe_downgrade"],
    *,
    is_dry: bool,
    as_json: bool,
) -> None:
    after = before
    if levels:
        after = admin.update_features(FeatureUpdates(levels=dict(levels), type=kind, validate_only=is_dry))
    known = {one.name: one.level for one in before.features}
    changed = {name: level for name, level in levels.items() if known.get(name, 0) != level}
    if as_json:
        print_json({"changed": changed, "is_dry_run": is_dry, **msgspec.to_builtins(after)})
    elif not changed:
        say("The levels are as asked for." if levels else "All levels are the highest that every node supports.")
    else:
        for name, level in changed.items():
            say(f"{name} {'could go' if is_dry else 'went'} from {known.get(name, 0)} to {level}.")


def _supported(feature: Feature) -> str:
    if feature.min_level is None or feature.max_level is None:
        return "none in common"
    return _range(feature.min_level, feature.max_level)


def _range(min_level: int, max_level: int) -> str:
    return str(max_level) if min_level == max_level else f"{min_level} to {max_level}"
