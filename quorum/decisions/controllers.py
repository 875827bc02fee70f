"""Who the controllers are.

ControllerRegistration, version 0 (KIP-919): what a voter's process supports, and where clients reach it.
"""

from typing import Final

from kio.schema.controller_registration.v0.request import ControllerRegistrationRequest
from kio.schema.controller_registration.v0.response import ControllerRegistrationResponse

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import NodeId
from ...protocol.messages import NO_THROTTLE
from ..metadata.image import MetadataImage
from ..metadata.records import RegisterControllerRecord, SupportedFeature
from .answers import ZERO_ID, wire_code
from .context import ControllerResult, DecisionContext
from .controller_request import ControllerRequest
from .registration_fields import endpoints_of, features_of


def register_controller(
    image: MetadataImage, request: ControllerRegistrationRequest, context: DecisionContext
) -> ControllerResult[ControllerRegistrationResponse]:
    """Take the place of what was registered under the id.

    Raises KafkaError(INVALID_REGISTRATION) when it is no voter's, KafkaError(UNSUPPORTED_VERSION) when the controller
    does not support what the cluster has finalized.
    """
    controller_id = NodeId(request.controller_id)
    if controller_id not in context.config.voter_ids:
        message = f"Node {controller_id} is no voter; voters are {sorted(context.config.voter_ids)}"
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, message)
    features = features_of(request.features)
    _check_features(image, controller_id, features)
    return ControllerResult(
        records=(
            RegisterControllerRecord(
                controller_id=controller_id,
                incarnation_id=request.incarnation_id or ZERO_ID,
                endpoints=endpoints_of(request.listeners),
                features=features,
            ),
        ),
        response=ControllerRegistrationResponse(
            throttle_time=NO_THROTTLE, error_code=wire_code(ErrorCode.NONE), error_message=None
        ),
    )


def _check_features(image: MetadataImage, controller_id: NodeId, features: tuple[SupportedFeature, ...]) -> None:
    supported = {feature.name: feature for feature in features}
    for name, level in image.features.items():
        feature = supported.get(name)
        if feature is None or not feature.min_supported_version <= level <= feature.max_supported_version:
            message = f"Controller {controller_id} does not support finalized version {level} of {name}."
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)


CONTROLLER_REGISTRATION: Final = ControllerRequest(
    ApiKey.CONTROLLER_REGISTRATION, register_controller, lambda request: request.controller_id
)
