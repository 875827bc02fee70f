"""Results of AlterConfigs and IncrementalAlterConfigs: one for each resource of the request."""

from __future__ import annotations

from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.alter_configs.v2.request import AlterConfigsResource as LegacyResource
from kio.schema.alter_configs.v2.response import AlterConfigsResourceResponse as LegacyResult
from kio.schema.alter_configs.v2.response import AlterConfigsResponse
from kio.schema.incremental_alter_configs.v1.request import AlterConfigsResource as IncrementalResource
from kio.schema.incremental_alter_configs.v1.request import IncrementalAlterConfigsRequest
from kio.schema.incremental_alter_configs.v1.response import AlterConfigsResourceResponse as IncrementalResult
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error


def incremental_result(resource: IncrementalResource, error: KafkaError | None) -> IncrementalResult:
    return IncrementalResult(
        error_code=kio_error(ErrorCode.NONE if error is None else error.code),
        error_message=None if error is None else error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def legacy_result(resource: LegacyResource, error: KafkaError | None) -> LegacyResult:
    return LegacyResult(
        error_code=kio_error(ErrorCode.NONE if error is None else error.code),
        error_message=None if error is None else error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def incremental_error(request: IncrementalAlterConfigsRequest, error: KafkaError) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        throttle_time=NO_THROTTLE,
        responses=tuple(incremental_result(resource, error) for resource in request.resources),
    )


def legacy_error(request: AlterConfigsRequest, error: KafkaError) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        throttle_time=NO_THROTTLE,
        responses=tuple(legacy_result(resource, error) for resource in request.resources),
    )
