"""ApiVersions 0 to 4: the APIs and versions of this node, and the features of the cluster.

0: KIP-35. 1, 2: throttling (KIP-124, KIP-219). 3: flexible, client software and features (KIP-511, KIP-584).
4: adds features whose lowest level is 0 (KIP-1022), which older clients would refuse.

An unknown version is answered in version 0 with UNSUPPORTED_VERSION and the version range of ApiVersions alone. The
epoch of the finalized features is the offset of the image: it only rises, and Java producers require it not negative.
"""

from __future__ import annotations

import re
from dataclasses import replace

from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.api_versions.v4.response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kio.static.primitive import i16, i64

from ...protocol.apis import APIS, Api, ApiKey
from ...protocol.errors import ErrorCode
from ...protocol.messages import NO_THROTTLE, decode_request, encode_response, kio_error, with_correlation_id
from ...quorum.metadata.features import FEATURES
from ...quorum.metadata.image import MetadataImage
from ..cluster.metadata_cache import MetadataCache
from ..network.handlers import Handlers
from ..network.request import Request

VERSION_OF_SOFTWARE = 3
VERSION_OF_ZERO_LEVELS = 4
SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def register(handlers: Handlers, metadata: MetadataCache, *, is_controller: bool = False) -> None:
    """`is_controller`: for the controllers' listener, which has its own API table (KIP-919)."""
    handlers.add(ApiKey.API_VERSIONS, ApiVersionsHandler(handlers, metadata, is_controller=is_controller).begin)


class ApiVersionsHandler:
    """Answers ApiVersions, and keeps the encoded response of each version until the image changes.

    Each connection of a client begins with this request, and its answer, a range for each API, takes longer to encode
    than all else that a new connection needs.
    """

    def __init__(self, handlers: Handlers, metadata: MetadataCache, *, is_controller: bool) -> None:
        self._handlers = handlers
        self._metadata = metadata
        self._is_controller = is_controller
        self._kept: dict[int, bytes] = {}
        self._kept_image: MetadataImage | None = None

    def begin(self, request: Request) -> None:
        version = request.api_version
        if not APIS[ApiKey.API_VERSIONS].has_version(version):
            request.respond(_encode(request, 0, unsupported_version()))
            return
        message = decode_request(request.api_key, version, request.body, request.body_offset)
        assert isinstance(message, ApiVersionsRequest)
        if version >= VERSION_OF_SOFTWARE:
            name, software_version = message.client_software_name, message.client_software_version
            if not SOFTWARE.fullmatch(name) or not SOFTWARE.fullmatch(software_version):
                request.respond(_encode(request, version, _refusal(ErrorCode.INVALID_REQUEST, ())))
                return
            request.set_context(replace(request.context, client_software=f"{name}/{software_version}"))
        if request.context.sasl is not None:
            request.context.sasl.on_versions_told()
        request.respond(with_correlation_id(self._frame(request), request.correlation_id))

    def _frame(self, request: Request) -> bytes:
        """Of a response; its correlation id is that of any request."""
        image, version = self._metadata.image, request.api_version
        if image is not self._kept_image:
            self._kept.clear()
            self._kept_image = image
        frame = self._kept.get(version)
        if frame is None:
            response = api_versions(self._handlers.built, image, version, is_controller=self._is_controller)
            frame = self._kept[version] = _encode(request, version, response)
        return frame


def api_versions(
    built: tuple[Api, ...], image: MetadataImage, version: int, *, is_controller: bool = False
) -> ApiVersionsResponse:
    """Returns the response for a request in `version`."""
    return ApiVersionsResponse(
        error_code=kio_error(ErrorCode.NONE),
        api_keys=tuple(_range(api) for api in built if (api.on_controller if is_controller else api.on_broker)),
        throttle_time=NO_THROTTLE,
        supported_features=tuple(
            SupportedFeatureKey(
                name=name,
                min_version=i16(feature.supported.min_level),
                max_version=i16(feature.supported.max_level),
            )
            for name, feature in FEATURES.items()
            if feature.supported.min_level > 0 or version >= VERSION_OF_ZERO_LEVELS
        ),
        finalized_features_epoch=i64(max(image.offset, 0)),
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, max_version_level=i16(level), min_version_level=i16(level))
            for name, level in sorted(image.features.items())
            if level > 0
        ),
    )


def unsupported_version() -> ApiVersionsResponse:
    """Returns the response to an unknown version of ApiVersions."""
    return _refusal(ErrorCode.UNSUPPORTED_VERSION, (_range(APIS[ApiKey.API_VERSIONS]),))


def _refusal(code: ErrorCode, api_keys: tuple[ApiVersion, ...]) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=kio_error(code), api_keys=api_keys, throttle_time=NO_THROTTLE)


def _range(api: Api) -> ApiVersion:
    return ApiVersion(
        api_key=i16(api.key), min_version=i16(api.advertised_min_version), max_version=i16(api.max_version)
    )


def _encode(request: Request, version: int, response: ApiVersionsResponse) -> bytes:
    return encode_response(ApiKey.API_VERSIONS, version, request.correlation_id, response)
