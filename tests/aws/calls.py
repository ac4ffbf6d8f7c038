"""The IAM actions and resources of a request to AWS."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from typing import Any, Literal, Self
from urllib.parse import unquote, urlsplit

from tests.aws import iam
from tests.aws.deployment import ACCOUNT, REGION, Deployment

Service = Literal["dynamodb", "opensearch", "bedrock", "events", "other"]

SIGNED_AS: dict[str, str] = {"dynamodb": "dynamodb", "opensearch": "es", "bedrock": "bedrock", "events": "events"}
_SCOPE = re.compile(r"Credential=[^/]+/\d{8}/[^/]+/([^/]+)/aws4_request")

# Where a call through a profile of AWS's own may end; a global one also needs the model's ARN without a region.
_GEOGRAPHIES = {
    "us": ("us-east-1", "us-east-2", "us-west-2"),
    "eu": ("eu-central-1", "eu-north-1", "eu-west-1", "eu-west-3"),
    "apac": ("ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2"),
    "global": (),
}
_TRANSACTED = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}
_DYNAMO_WRITES = {"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"}
_INDEX_READS = ("_search", "_msearch", "_count", "_mget", "_refresh")


@dataclass(frozen=True)
class Call:
    service: Service
    operation: str
    """DynamoDB's or EventBridge's operation; for others the last part of the path, such as `_bulk` or `converse`."""
    method: str
    path: str  # Without the query string
    needs: tuple[tuple[str, str], ...]  # The (action, resource) pairs that the role must allow
    writes: bool  # Whether it changes something that outlives the function
    signed_as: str  # The service in the signature's scope; empty when it is not signed
    body: bytes = field(repr=False, default=b"")
    context: iam.Context = field(default_factory=dict)  # Condition keys of the call, as `iam.allowed` takes them

    @property
    def content(self) -> Any:
        return json.loads(self.body)


def _leading_keys(asked: Mapping[str, Any]) -> tuple[str, ...]:
    """The partition keys `namespace` that a write names; of tables with another key none."""
    parts = [part for item in asked.get("TransactItems", ()) for part in item.values()] or [asked]
    rows = [part.get("Item") or part.get("Key") for part in parts]
    keys = (row.get("namespace") or {"S": ""} for row in rows if row)
    return tuple(next(iter(key.values())) for key in keys)


@dataclass(frozen=True)
class Account:
    """Whose resources they are; `domain` is the ARN of the OpenSearch domain."""

    region: str = REGION
    account: str = ACCOUNT
    domain: str = f"arn:aws:es:{REGION}:{ACCOUNT}:domain/mats"

    @classmethod
    def of(cls, deployment: Deployment) -> Self:
        """The account of the templates and the one domain they have."""
        domain = deployment.one("AWS::OpenSearchService::Domain")
        return cls(deployment.region, deployment.account, domain.arn)

    def read(self, service: Service, method: str, target: str, headers: Message, body: bytes) -> Call:
        """The request in IAM's words."""
        path = urlsplit(target).path
        scope = _SCOPE.search(headers.get("Authorization") or "")
        operation = (headers.get("X-Amz-Target") or "").rpartition(".")[2] or path.rstrip("/").rpartition("/")[2]
        signed_as = scope[1] if scope else ""
        match service:
            case "dynamodb":
                needs, writes = self._dynamodb(operation, json.loads(body)), operation in _DYNAMO_WRITES
            case "opensearch":
                action = f"es:ESHttp{method.title()}"
                needs = [(action, self.domain + path)]
                writes = method not in {"GET", "HEAD"} and not path.endswith(_INDEX_READS)
            case "bedrock":
                needs, writes = self._bedrock(unquote(path.split("/")[2]), operation), False
            case "events":
                buses = {str(entry.get("EventBusName", "default")) for entry in json.loads(body)["Entries"]}
                named = ("event-bus/" + bus.rpartition("/")[2] for bus in sorted(buses))
                arns = [self._arn("events", name) for name in named]
                needs, writes = [(f"events:{operation}", arn) for arn in arns], True
                (source,) = {entry["Source"] for entry in json.loads(body)["Entries"]}
            case _:
                needs, writes = [(f"{signed_as or 'unknown'}:{operation}", "*")], False
        profiles = [arn for _, arn in needs if ":inference-profile/" in arn]
        # IAM has no such key for a direct call, which no condition of ours on it holds for either
        context: dict[str, Any] = (
            {"bedrock:InferenceProfileArn": profiles[0] if profiles else ""} if service == "bedrock" else {}
        )
        if service == "events":
            context = {"events:source": source}
        if service == "dynamodb" and (keys := _leading_keys(json.loads(body))):
            context = {"dynamodb:LeadingKeys": keys}
        return Call(service, operation, method, path, tuple(needs), writes, signed_as, body, context)

    def _dynamodb(self, operation: str, asked: Mapping[str, Any]) -> list[tuple[str, str]]:
        items = asked.get("TransactItems")
        if items is not None:
            parts = [part for item in items for part in item.items()]
            needs = [(_TRANSACTED.get(kind, "GetItem"), part["TableName"]) for kind, part in parts]
        elif "RequestItems" in asked:
            needs = [(operation, table) for table in asked["RequestItems"]]
        elif "TableName" in asked:
            index = f"/index/{asked['IndexName']}" if "IndexName" in asked else ""
            needs = [(operation, asked["TableName"] + index)]
        else:
            return [(f"dynamodb:{operation}", "*")]
        pairs = ((f"dynamodb:{action}", self._table(table)) for action, table in needs)
        return list(dict.fromkeys(pairs))

    def _table(self, table: str) -> str:
        return table if table.startswith("arn:") else self._arn("dynamodb", f"table/{table}")

    def _bedrock(self, model: str, operation: str) -> list[tuple[str, str]]:
        """A profile needs itself and the model in every region where a call may end."""
        streamed = operation in {"converse-stream", "invoke-with-response-stream"}
        action = "bedrock:InvokeModelWithResponseStream" if streamed else "bedrock:InvokeModel"
        if model.startswith("arn:"):
            return [(action, model)]
        geography, _, rest = model.partition(".")
        if geography in _GEOGRAPHIES:
            regions = [self.region, ""] if geography == "global" else _GEOGRAPHIES[geography]
            models = [(action, f"arn:aws:bedrock:{region}::foundation-model/{rest}") for region in regions]
            return [(action, self._arn("bedrock", f"inference-profile/{model}")), *models]
        return [(action, f"arn:aws:bedrock:{self.region}::foundation-model/{model}")]

    def _arn(self, service: str, rest: str) -> str:
        return f"arn:aws:{service}:{self.region}:{self.account}:{rest}"
