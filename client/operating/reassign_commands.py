"""`penstock reassign`: replicas move to other brokers by a plan (KIP-455)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from ...protocol.rest.elections import PartitionName
from ...protocol.rest.moves import Assignment, CancelRequest, Move, ReassignmentList, ReassignmentPlan
from ...protocol.rest.moves import ReassignmentRequest as Request
from .. import clock
from ..terminal import print_json, print_table, progress, say
from ..units import format_bytes
from .admin_options import admin_options, check_quorum, json_option, moving_max_option
from .partition_names import check_outcomes, parse_partitions
from .reassignment_file import moved_replicas, parse_plan, plan_text
from .throttles import remove_throttles, set_throttle

if TYPE_CHECKING:
    from ..admin import Admin

LOOK_INTERVAL_S: Final = 1.0
ROWS_MAX: Final = 50
"""Moves that a table shows; files and JSON have all that the node lists."""

_topics = click.option("--topic", "-t", "topics", metavar="TOPIC", multiple=True, help="Only these; may be repeated.")
_brokers = click.option(
    "--brokers",
    metavar="ID,…",
    callback=lambda _context, _parameter, text: _parse_brokers(text),
    help="Onto these brokers. Without it all that are active and not drained.",
)
_file = click.option(
    "--plan", "plan_file", metavar="FILE", type=click.File("rb"), help="A plan of kafka-reassign-partitions or `plan`."
)


@click.group()
def reassign() -> None:
    """Move replicas to other brokers: plan, apply, watch, cancel."""


@reassign.command()
@_topics
@_brokers
@click.option("--save", metavar="FILE", type=click.Path(dir_okay=False), help="Write the plan, for `apply --plan`.")
@click.option("--save-rollback", metavar="FILE", type=click.Path(dir_okay=False), help="Write what takes it back.")
@json_option
@admin_options
def plan(
    admin: Admin,
    topics: tuple[str, ...],
    brokers: list[int] | None,
    save: str | None,
    save_rollback: str | None,
    as_json: bool,
) -> None:
    """Plan to balance topics, or the whole cluster, over brokers, with few replicas moved. Nothing is moved.

    Files are in the format of Apache Kafka's kafka-reassign-partitions.
    """
    made = admin.reassign(Request(topics=list(topics) or None, brokers=brokers, validate_only=True))
    if (save or save_rollback) and made.move_count > len(made.moves):
        raise click.ClickException(
            f"The plan has {made.move_count:,} moves, more than the {len(made.moves):,} that a node lists: plan it by "
            "topics (--topic), or let `penstock reassign apply` make and carry out the whole."
        )
    if save:
        _write(save, plan_text(made.moves))
    if save_rollback:
        _write(save_rollback, plan_text(made.moves, is_rollback=True))
    _print_plan(made, as_json=as_json)


@reassign.command()
@_file
@_topics
@_brokers
@click.option("--throttle", type=click.IntRange(min=1), metavar="BYTES", help="At most so many bytes a second.")
@click.option("--wait/--no-wait", "is_waiting", default=True, show_default=True, help="Until all moves are done.")
@moving_max_option("move")
@json_option
@admin_options
def apply(
    admin: Admin,
    plan_file: object,
    topics: tuple[str, ...],
    brokers: list[int] | None,
    throttle: int | None,
    is_waiting: bool,
    moving_max: int,
    as_json: bool,
) -> None:
    """Carry out a plan: that of a file, or one that is made now for topics and brokers.

    It begins moves as others end, shows how far they are, and removes the throttle at the end.
    """
    if plan_file is not None and (topics or brokers is not None):
        raise click.UsageError("--plan stands alone, without --topic and --brokers.")
    if throttle is not None and not is_waiting:
        raise click.UsageError("--throttle needs --wait: the throttle is removed when all moves are done.")
    assignments = None if plan_file is None else _read_plan(plan_file)
    check_quorum(admin)
    asked = Request(plan=assignments, topics=list(topics) or None, brokers=brokers, validate_only=True)
    made = admin.reassign(asked)
    if assignments is None and made.move_count <= len(made.moves):
        # The plan stays the same while the cluster changes under it.
        asked = Request(
            plan=[Assignment(topic=move.topic, partition=move.partition, replicas=move.after) for move in made.moves]
        )
    asked = msgspec.structs.replace(asked, validate_only=False, moving_max=moving_max)
    if throttle is not None:
        set_throttle(admin, made.moves, throttle)
    try:
        begun = _carry_out(admin, asked, made, is_waiting=is_waiting)
    except KeyboardInterrupt:
        say("Moves that began go on; `penstock reassign watch` shows them, `penstock reassign cancel` takes them back.")
        if throttle is not None:
            say("The throttle stays: `penstock reassign watch --unthrottle` removes it at the end.")
        raise
    if throttle is not None:
        remove_throttles(admin, {move.topic for move in made.moves})
    if as_json:
        print_json({**msgspec.to_builtins(made), "begun_count": begun})
    elif not made.move_count:
        say("Nothing has to move.")
    elif is_waiting:
        say(f"Moved {_partitions(made.move_count)}.")
    else:
        rest = " Apply it again for the rest." if begun < made.move_count else ""
        say(f"Began to move {begun:,} of {_partitions(made.move_count)}.{rest}")


@reassign.command()
@click.option("--once", is_flag=True, help="Show what moves now, and end.")
@click.option("--unthrottle", is_flag=True, help="Remove throttles of all brokers and topics when nothing moves.")
@json_option
@admin_options
def watch(admin: Admin, once: bool, unthrottle: bool, as_json: bool) -> None:
    """Show the partitions that move, and wait until none does."""
    state = admin.list_reassignments()
    if once:
        _print_moving(state, as_json=as_json)
        return
    first = state
    with progress("reassigning", total=max(1, first.bytes_left), unit="bytes") as bar:
        while state.count:
            clock.pause(LOOK_INTERVAL_S)
            state = admin.list_reassignments()
            bar.advance_to(max(0, first.bytes_left - state.bytes_left))
    removed = remove_throttles(admin) if unthrottle else []
    if as_json:
        print_json({"moved_count": first.count, "unthrottled": removed})
    else:
        say(f"{_partitions(first.count)} moved." if first.count else "Nothing moves.")
        if removed:
            say(f"Removed the throttle of {', '.join(removed)}.")


@reassign.command()
@click.argument("names", metavar="[TOPIC[:PARTITION]…]", nargs=-1)
@json_option
@admin_options
def cancel(admin: Admin, names: tuple[str, ...], as_json: bool) -> None:
    """Cancel moves of these partitions, or all: replicas are as they were before."""
    named = parse_partitions(names)
    check_quorum(admin)
    wanted = list(named.partitions)
    if named.topics:
        moving = admin.list_reassignments().reassignments
        wanted += [
            PartitionName(topic=one.topic, partition=one.partition) for one in moving if one.topic in named.topics
        ]
    result = admin.cancel_reassignments(CancelRequest(partitions=wanted if names else None))
    if as_json:
        print_json(msgspec.to_builtins(result))
    else:
        say(f"Cancelled the moves of {_partitions(result.cancelled_count)}.")
    check_outcomes(result.results, what="cancelled")


def plan_rows(moves: list[Move]) -> list[tuple[str, int, list[int], list[int]]]:
    """What a table shows of a plan."""
    return [(move.topic, move.partition, move.before, move.after) for move in moves[:ROWS_MAX]]


def plan_sentence(made: ReassignmentPlan) -> str:
    """How much a plan moves, and between which brokers."""
    if not made.move_count:
        return "Nothing has to move."
    size = "" if made.bytes_to_copy is None else f", {format_bytes(made.bytes_to_copy)} to copy"
    brokers = ", ".join(
        f"broker {broker} +{more} -{less}" for broker, (more, less) in moved_replicas(made.moves).items()
    )
    return f"{_partitions(made.move_count)} to move{size}{f' ({brokers})' if brokers else ''}."


def _carry_out(admin: Admin, asked: Request, made: ReassignmentPlan, *, is_waiting: bool) -> int:
    """Begins moves until none is left; how many were begun. Raises AdminError, ClickException."""
    step = admin.reassign(asked)
    begun = step.begun_count
    check_outcomes(step.results, what="moved")
    if not is_waiting:
        return begun
    total = max(1, made.move_count)
    with progress("reassigning", total=total, unit="partitions") as bar:
        while True:
            moving = admin.list_reassignments().count
            bar.advance_to(max(0, begun - moving))
            if not moving and begun >= made.move_count:
                return begun
            clock.pause(LOOK_INTERVAL_S)
            if begun < made.move_count:
                step = admin.reassign(asked)
                check_outcomes(step.results, what="moved")
                begun = min(made.move_count, begun + step.begun_count)
                if not step.move_count:
                    begun = made.move_count


def _print_plan(made: ReassignmentPlan, *, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.to_builtins(made))
        return
    if made.moves:
        print_table(("topic", "partition", "replicas now", "planned"), plan_rows(made.moves))
        if made.move_count > ROWS_MAX:
            say(f"… and {made.move_count - ROWS_MAX:,} more.")
    say(plan_sentence(made))


def _print_moving(state: ReassignmentList, *, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.to_builtins(state))
    elif not state.count:
        say("Nothing moves.")
    else:
        rows = [
            (
                one.topic,
                one.partition,
                one.isr,
                [replica.broker_id for replica in one.adding],
                one.removing,
                format_bytes(sum(replica.bytes_left or 0 for replica in one.adding)),
            )
            for one in state.reassignments[:ROWS_MAX]
        ]
        print_table(("topic", "partition", "isr", "adding", "removing", "left"), rows)
        say(f"{_partitions(state.count)} move, {format_bytes(state.bytes_left)} left.")


def _partitions(count: int) -> str:
    return f"{count:,} partition{'' if count == 1 else 's'}"


def _parse_brokers(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a list of broker ids like 1,2,3") from error


def _read_plan(file: object) -> list[Assignment]:
    name = getattr(file, "name", "the plan")
    try:
        return parse_plan(file.read())  # type: ignore[attr-defined]
    except ValueError as error:
        raise click.ClickException(f"{name} cannot be used: {error}.") from error


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text)
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}.") from error
