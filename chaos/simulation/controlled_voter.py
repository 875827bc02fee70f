"""A voter with the product's controller on top: its state is the metadata image.

Clients ask for decisions that read a counter and raise it. A controller that decides on an image without what was
committed before answers a number that was answered already.
"""

from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

from ...protocol.errors import KafkaError
from ...protocol.ids import ControllerEpoch, NodeId
from ...quorum.controller.controller import Controller
from ...quorum.decisions.bootstrap import bootstrap_records
from ...quorum.decisions.context import ControllerConfig, ControllerResult, DecisionContext
from ...quorum.metadata.image import MetadataImage
from ...quorum.metadata.publishers import Publishers
from ...quorum.metadata.records import FeatureLevelRecord
from ...quorum.metadata.snapshot_records import image_chunks
from ...quorum.raft.consensus import ConsensusFailed, ConsensusListener, Snapshot
from ...quorum.voter.voter import RaftVoter
from .simulated_voter import SimulatedVoter

_CLUSTER_ID: Final = "kVg0FJXuTjOXMxXGnN9MPA"
_COUNTER: Final = "counter"
_COMMAND: Final = "command "


class _Counted(NamedTuple):
    number: int
    offset: int


def _count_up(image: MetadataImage, command: str, context: DecisionContext) -> ControllerResult[_Counted]:
    number = image.features.get(_COUNTER, 0) + 1
    return ControllerResult(
        records=(
            FeatureLevelRecord(name=_COUNTER, feature_level=number),
            FeatureLevelRecord(name=_COMMAND + command, feature_level=1),
        ),
        response=_Counted(number, context.next_offset),
    )


class _TappedVoter(RaftVoter):
    """Tells the simulation first, and that the controller."""

    tap: "ControlledVoter"

    async def start(self, listener: ConsensusListener) -> None:
        self.tap.listener = listener
        await super().start(self.tap)


class ControlledVoter(SimulatedVoter):
    """Its `kept` are the commands that the image has."""

    voter_class = _TappedVoter
    listener: ConsensusListener
    controller: Controller | None = None

    async def _run(self, voter: RaftVoter) -> None:
        assert isinstance(voter, _TappedVoter)
        assert self.loop is not None
        voter.tap = self
        self.controller = Controller(
            voter,
            Publishers(),
            config=ControllerConfig(node_id=NodeId(self.node_id)),
            bootstrap=bootstrap_records(_CLUSTER_ID, min_insync_replicas=1),
            random=Random(self.node_id),
            loop=self.loop.as_loop,
            wall_clock_ms=lambda: 0,
            on_failure=self._on_controller_failure,
        )
        try:
            await self.controller.start()
        except ConsensusFailed as error:
            self.on_failure(error)

    def _on_controller_failure(self, sentence: str) -> None:
        """Hear of the controller's own failures; those of the voter came first."""
        if not self.has_failed:
            self._judge.on_failure(self.node_id, sentence)

    @property
    def kept(self) -> Sequence[bytes]:
        if self.controller is None:
            return ()
        features = self.controller.image.features
        return [name[len(_COMMAND) :].encode() for name in features if name.startswith(_COMMAND)]

    @property
    def state(self) -> object:
        return None if self.controller is None else list(image_chunks(self.controller.image))

    def propose(self, command: bytes) -> None:
        assert self.loop is not None
        if self.controller is not None:
            self._trace(f"decide {self.node_id} {command[:20]!r}")
            self.loop.create_task(self._submit(self.controller, command))

    async def _submit(self, controller: Controller, command: bytes) -> None:
        try:
            counted = await controller.submit(_count_up, command.decode())
        except KafkaError:
            return
        self._judge.on_decided(command, counted.offset, counted.number)

    def save_snapshot(self) -> bool:
        if self.controller is None or self.loop is None or self.has_failed or not self.heard_end or self._is_saving:
            return False
        if self.controller.image.offset < 0:
            return False
        self._is_saving = True
        self.loop.create_task(self._save_image(self.controller))
        return True

    async def _save_image(self, controller: Controller) -> None:
        await controller.snapshots.save_now()
        self._is_saving = False

    # What the voter tells.

    def on_snapshot(self, snapshot: Snapshot) -> None:
        self.heard_end, self.epoch = snapshot.end_offset, snapshot.epoch
        self._trace(f"snapshot {self.node_id} {snapshot.end_offset}")
        self.listener.on_snapshot(snapshot)

    def on_commit(self, offset: int, epoch: ControllerEpoch, command: bytes) -> None:
        super().on_commit(offset, epoch, command)
        self.listener.on_commit(offset, epoch, command)

    def on_leadership(self, leader_id: NodeId | None, epoch: ControllerEpoch) -> None:
        super().on_leadership(leader_id, epoch)
        self.listener.on_leadership(leader_id, epoch)

    def on_failure(self, error: ConsensusFailed) -> None:
        super().on_failure(error)
        self.listener.on_failure(error)
