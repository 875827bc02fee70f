"""The file `.kafka_cleanshutdown`: its log directory was closed, so that no log needs recovery.

Its content is the epoch of the broker's last registration, which the next one shows to prove that nothing was lost in
between (KIP-966): {"version":0,"brokerEpoch":7}
"""

import json
from typing import Final

from ....protocol.ids import BrokerEpoch

CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"
_VERSION: Final = 0


def encode_clean_shutdown(broker_epoch: BrokerEpoch) -> bytes:
    return f'{{"version":{_VERSION},"brokerEpoch":{broker_epoch}}}'.encode()


def decode_clean_shutdown(data: bytes) -> BrokerEpoch | None:
    """The broker epoch, or None for a file without one: older releases left the file empty."""
    try:
        content = json.loads(data)
    except ValueError:
        return None
    epoch = content.get("brokerEpoch") if isinstance(content, dict) else None
    return BrokerEpoch(epoch) if type(epoch) is int else None
