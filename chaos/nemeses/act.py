"""One fault being carried out: it begins, perhaps goes on in steps, and ends; and what proves that it took hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, Protocol

from ...client import clock
from ...local.errors import ClusterError, NodeFailedError
from ..histories.operation import NEMESIS, Operation
from ..links.link import Link
from .fault import LinkFault
from .selectors import View, needs_leaders
from .target import Target

# For what a selector names: a leader, an active controller.
_CHOICE_S: Final = 10.0
_POLL_S: Final = 0.05
# For replicas to be in sync before the next node is hit.
IN_SYNC_S: Final = 20.0
# For a node that was started a moment ago to serve clients; one try of it.
_SERVING_S: Final = 20.0
_SERVING_TRY_S: Final = 1.0


class NotTakenHoldError(ClusterError):
    """The fault is not what it was to be; the sentence says why. `value` is what is known of it."""

    def __init__(self, sentence: str, **value: Any) -> None:
        super().__init__(sentence)
        self.value = value


class Act(Protocol):
    """`begin` and `end` return what belongs into the events, as data; both raise ClusterError when it did not take
    hold, and `end` mends all the same."""

    repeat_s: float | None
    """`repeat` is called so often between the two."""

    def begin(self) -> Mapping[str, Any]: ...
    def repeat(self) -> None: ...
    def end(self) -> Mapping[str, Any]: ...


@dataclass(slots=True)
class Stage:
    """What acts of one nemesis share."""

    target: Target
    note: Callable[[Operation], None]
    """Takes an event into the history; its time is set there."""
    held_down: dict[int, int] = field(default_factory=dict)
    """How many acts want a node to be down."""
    links: dict[int, tuple[LinkFault, tuple[Link, ...]]] = field(default_factory=dict)
    """Faults of links that hold, by number."""
    is_damaged: bool = False
    """Data of a node were damaged, and replicas were not seen in sync since."""
    was_down: bool = False
    """A node was taken down or ended, and replicas were not seen in sync since."""
    is_over: Callable[[], bool] = lambda: False
    chosen_ns: int = 0
    """When it was clear whom the last fault hits, by the monotonic clock."""

    def note_canary(self, link: Link, *, works: bool, during: str | None) -> None:
        value = {"link": list(link), "works": works, "during": during}
        self.note(Operation(0, "info", NEMESIS, 0, "canary", value))

    def choose(self, selector: str, choice: Callable[[str, View, Random], Sequence[Any]], random: Random) -> Any:
        """What the selector names, waiting for it for a while. Raises NotTakenHoldError when it names nothing."""
        chosen: Sequence[Any] = ()

        def is_there() -> bool:
            nonlocal chosen
            chosen = choice(selector, self.target.view(with_leaders=needs_leaders(selector)), random)
            return bool(chosen) or self.is_over()

        clock.wait_until(is_there, timeout_s=_CHOICE_S, interval_s=_POLL_S)
        self.chosen_ns = clock.monotonic_ns()
        if not chosen:
            raise NotTakenHoldError(
                f"nothing is {selector!r} now: no leader, no active controller, no such node, or none with such data"
            )
        return chosen

    def settle(self, *, for_damage: bool = False) -> bool:
        """Before a node is hit: whether replicas are in sync, after a while of waiting, where an earlier fault matters.

        What was damaged does before any other node is hit; that a node was down does before data are damaged, which
        may be those of the only replica left in sync.
        """
        if not (self.is_damaged or (for_damage and self.was_down)):
            return True
        clock.wait_until(lambda: self.target.is_in_sync() or self.is_over(), timeout_s=IN_SYNC_S, interval_s=_POLL_S)
        if not self.target.is_in_sync():
            return False
        self.is_damaged = self.was_down = False
        return True

    def let_serve(self, nodes: Iterable[int]) -> None:
        """Waits for a while until those of them serve clients that no act has down or paused.

        One that is starting, or ending by a fault of its disk, does not yet, or no longer, what a fault would hit.
        """
        deadline_s = clock.monotonic_s() + _SERVING_S
        for node in nodes:
            while (left_s := deadline_s - clock.monotonic_s()) > 0 and not self.is_over():
                self.keep_up(node)
                if self.target.state(node) != "up":
                    break
                try:
                    self.target.wait_ready((node,), timeout_s=min(_SERVING_TRY_S, left_s))
                    break
                except NodeFailedError:
                    # It is asked again, and started again where it has ended.
                    continue

    def hold_down(self, node: int) -> None:
        self.was_down = True
        self.held_down[node] = self.held_down.get(node, 0) + 1

    def let_up(self, node: int) -> None:
        """The node is started when no act wants it down."""
        self.held_down[node] = self.held_down.get(node, 0) - 1
        self.keep_up(node)

    def keep_up(self, node: int) -> None:
        """Starts a node that is down, and that no act wants down: it may have ended by a fault of its disk."""
        if self.held_down.get(node, 0) <= 0 and self.target.state(node) == "down":
            self.was_down = True
            self.target.begin_start(node)
