"""Which log directories of this node take no new replica: `cordoned.log.dirs`, static and dynamic (KIP-1066)."""

from __future__ import annotations

from ...quorum.metadata.delta import MetadataDelta
from ...quorum.metadata.features import has_cordoned_directories
from ...quorum.metadata.image import MetadataImage
from ...storage.directories.log_directories import LogDirectories
from ..configuration.topic_configs import ConfigResolver
from .lifecycle import BrokerLifecycle


class Cordons:
    """A publisher behind the configs. Below metadata.version 4.3-IV0 nothing is cordoned, whatever is configured."""

    def __init__(self, directories: LogDirectories, configs: ConfigResolver, lifecycle: BrokerLifecycle) -> None:
        self._directories = directories
        self._configs = configs
        self._lifecycle = lifecycle

    def publish(self, _delta: MetadataDelta, image: MetadataImage) -> None:
        if self.apply(image):
            self._lifecycle.report_cordoned_directories()

    def apply(self, image: MetadataImage) -> bool:
        """Whether that changes anything."""
        is_supported = has_cordoned_directories(image.features)
        return self._directories.cordon(self._configs.node_config.cordoned_log_dirs if is_supported else ())
