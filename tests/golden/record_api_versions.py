"""Write down what a broker and a controller answer to ApiVersions: how kafka-4.3.1-api-versions.json was made.

python tests/golden/record_api_versions.py BROKER_HOST:PORT CONTROLLER_HOST:PORT > kafka-4.3.1-api-versions.json
"""

import asyncio
import json
import re
import sys

from kio.schema.api_versions.v4 import ApiVersionsRequest, ApiVersionsResponse

from penstock.client.connection import connect


async def answer_of(address: str) -> dict[str, object]:
    host, _, port = address.rpartition(":")
    async with await connect(host, int(port)) as connection:
        question = ApiVersionsRequest(client_software_name="penstock", client_software_version="1")
        answer = await connection.call(question)
    assert isinstance(answer, ApiVersionsResponse)
    return {
        "apis": {
            str(api.api_key): [api.min_version, api.max_version]
            for api in sorted(answer.api_keys, key=lambda api: api.api_key)
        },
        "supported features": {
            one.name: [one.min_version, one.max_version]
            for one in sorted(answer.supported_features, key=lambda one: one.name)
        },
        "finalized features": {
            one.name: one.max_version_level for one in sorted(answer.finalized_features, key=lambda one: one.name)
        },
    }


async def main() -> None:
    broker, controller = sys.argv[1:]
    recorded = {"broker": await answer_of(broker), "controller": await answer_of(controller)}
    # One line for each API and feature.
    sys.stdout.write(re.sub(r"\[\s+(\d+),\s+(\d+)\s+\]", r"[\1, \2]", json.dumps(recorded, indent=1)) + "\n")


asyncio.run(main())
