"""A whole account on loopback: tables, event path, both functions and their roles, as the templates have them.

Real are DynamoDB, OpenSearch, botocore, the runtime client and our code; Bedrock, rule, queue and IAM are played.
What a role or the domain does not allow is refused here as it would be there, and is an error when the world is left.
"""

import atexit
import json
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, Self
from urllib.parse import quote
from urllib.request import Request, urlopen

import boto3

from mats.adapters.dynamodb.tables import from_row, to_row
from tests.aws import iam
from tests.aws.bedrock import BedrockServer
from tests.aws.core_layer import copy_core_layer
from tests.aws.deployment import ACCOUNT, REGION, Deployment, Misconfigured, Resource
from tests.aws.dynamodb import make_tables
from tests.aws.event_path import Event, EventPath, Failed
from tests.aws.python import deployed_python
from tests.aws.recorder import Account, Act, Call, Play, Recorder, Refuse
from tests.aws.runtime import Function, Invocation
from tests.aws.state_machine import StateMachine, started_by_event, started_by_schedule

ROOT = Path(__file__).parents[2]
ALIAS = "capabilities"
NOBODY = f"arn:aws:sts::{ACCOUNT}:assumed-role/Nobody/session"

Item = dict[str, Any]

_TRIES = 10


@dataclass(frozen=True)
class Servers:
    """Where the real ones listen."""

    dynamodb: str
    opensearch: str


@dataclass(frozen=True)
class Reply:
    """The response of API Gateway to a caller."""

    status: int
    headers: Mapping[str, str]
    content: Any

    @property
    def ids(self) -> list[str]:
        """The ids found, best first."""
        assert self.status == 200, self.content
        return [result["id"] for result in self.content["results"]]

    @property
    def lacks(self) -> list[str]:
        """What the answer lacks; without the receipt, which may be late on a busy machine."""
        return sorted(set(self.content["degraded"]) - {"receipt"})


@dataclass
class Environment:
    """One execution environment of a function, in front of what its role lets it reach."""

    recorder: Recorder
    rights: list[iam.Statement]
    domain: list[iam.Statement]  # The permissions of the role by the domain's own policy
    keys: Mapping[str, str] = field(default_factory=dict)  # The customer managed keys by table
    weather: Play | None = None  # The faults of calls that are allowed
    denied: list[str] = field(default_factory=list)
    function: Function = field(init=False)

    def decide(self, call: Call) -> Act | None:
        """The outcome of a call of the function."""
        if call.service in ("dynamodb", "opensearch", "bedrock", "events"):
            lacking = [need for need in (*call.needs, *self._keys(call)) if not self._allowed(call, need)]
            if lacking:
                self.denied += [f"{action} on {resource}" for action, resource in lacking]
                return Refuse(403, "AccessDeniedException")
        if call.service == "opensearch" and names_an_index(call):
            self.denied.append(f"an index in the body of {call.path}: rest.action.multi.allow_explicit_index is false")
            return Refuse(400, "illegal_argument_exception")
        return self.weather(call) if self.weather else None

    def _keys(self, call: Call) -> list[tuple[str, str]]:
        """The right to the key of each table that the call is for: DynamoDB decrypts in the caller's name."""
        tables = {resource.partition(":table/")[2].partition("/")[0] for _, resource in call.needs}
        return [("kms:Decrypt", key) for table, key in self.keys.items() if table in tables]

    def _allowed(self, call: Call, need: tuple[str, str]) -> bool:
        if need[0] == "kms:Decrypt":
            return iam.allowed(self.rights, *need, {"kms:ViaService": f"dynamodb.{REGION}.amazonaws.com"})
        by_domain = call.service != "opensearch" or iam.allowed(self.domain, *need)
        return by_domain and iam.allowed(self.rights, *need, call.context)

    def check(self) -> None:
        """Fail where the function asked for what an account would refuse."""
        assert not self.denied, f"{self.function.name} may not: {list(dict.fromkeys(self.denied))}"
        assert not self.recorder.strangers, self.recorder.strangers
        assert not self.recorder.refused(self.rights)


def names_an_index(call: Call) -> bool:
    """Whether a request for several documents says in its body where they are, past its own path."""
    if not call.path.endswith(("/_bulk", "/_mget", "/_msearch")):
        return False
    lines = [json.loads(line) for line in call.body.splitlines() if line.strip()]
    heads = [line for line in lines if isinstance(line, dict)]
    about = [value for head in heads for value in head.values() if isinstance(value, dict)]
    docs = [doc for head in heads for doc in head.get("docs", ()) if isinstance(doc, dict)]
    return any("_index" in each or "index" in each for each in [*about, *docs])


def rights_of(deployment: Deployment, function: Resource) -> tuple[list[iam.Statement], list[iam.Statement]]:
    """The permissions of a function's role, by its own policies and by the domain's."""
    role = iam.role_of(deployment, function)
    policy = deployment.one("AWS::OpenSearchService::Domain").get("AccessPolicies", {"Statement": []})
    named = [each for each in policy["Statement"] if each.get("Principal") == {"AWS": role.arn}]
    return iam.statements(deployment, role), named


@cache
def core_layer() -> Path:
    """The layer, compiled once: functions write no bytecode, and each would compile it anew."""
    folder = Path(mkdtemp(prefix="mats-layer-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    core = copy_core_layer(folder / "core")
    subprocess.run([deployed_python()[0], "-m", "compileall", "-q", core], check=True)
    return core


class World:
    """The account, while it is entered."""

    def __init__(self, deployment: Deployment, servers: Servers, *, timeout_s: float | None = None) -> None:
        self.deployment, self.servers = deployment, servers
        self._limits = {} if timeout_s is None else {"timeout_s": timeout_s}
        self._inside = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as entered:
            self.dynamodb = self._client("dynamodb")
            make_tables(self.deployment, self.dynamodb)
            self.drop_indices()
            entered.callback(self.drop_indices)
            self.bedrock = entered.enter_context(BedrockServer())
            self.streams = self._environment(entered, "Streams", "streams", {})
            self.path = EventPath(self.deployment, self._client, carry=self._carry)
            self.offline = self._environment(entered, "Enrichment", "enrichment", self._limits)
            self.online = self._environment(entered, "Discovery", "discovery", {})
            self.repair = self._environment(entered, "Maintenance", "maintenance", self._limits)
            self.feedback = self._environment(entered, "Feedback", "feedback", {})
            self.learning = self._environment(entered, "Learner", "learning", {})
            self.routes = dict(_routes(self.deployment))
            self._inside = entered.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with self._inside:
            if kind is None:
                self.check()

    def check(self) -> None:
        """Fail where a function asked for what an account would refuse."""
        for each in self.environments:
            each.check()

    def forgive(self) -> None:
        """Forget what was refused: the test has seen it."""
        for each in self.environments:
            each.denied.clear()
            each.recorder.calls.clear()

    @property
    def environments(self) -> list[Environment]:
        """Those of every function."""
        return [self.offline, self.streams, self.online, self.repair, self.feedback, self.learning]

    @property
    def calls(self) -> list[Call]:
        """Every call of either function so far."""
        return [call for each in self.environments for call in each.recorder.calls]

    def _client(self, service: str) -> Any:
        return boto3.client(
            service,  # type: ignore[call-overload]
            endpoint_url=self.servers.dynamodb,
            region_name=REGION,
            aws_access_key_id="example",
            aws_secret_access_key="example",
        )

    def _environment(self, entered: ExitStack, named: str, folder: str, limits: Mapping[str, float]) -> Environment:
        resource = self.deployment.one("AWS::Lambda::Function", named)
        recorder = entered.enter_context(
            Recorder(
                dynamodb=self.servers.dynamodb,
                opensearch=self.servers.opensearch,
                bedrock=self.bedrock.url,
                account=Account.of(self.deployment),
            )
        )
        encrypted = {
            table.ref: table["SSESpecification"]["KMSMasterKeyId"]
            for table in self.deployment.all("AWS::DynamoDB::Table")
            if "KMSMasterKeyId" in table.get("SSESpecification", {})
        }
        environment = Environment(recorder, *rights_of(self.deployment, resource), keys=encrypted)
        recorder.play = environment.decide
        task = Path(entered.enter_context(TemporaryDirectory(prefix="mats-task-"))) / folder
        shutil.copytree(ROOT / "functions" / folder, task, ignore=shutil.ignore_patterns("__pycache__"))
        python, wheels = deployed_python()
        around = recorder.environment() | self._index(resource, recorder.url("opensearch"))
        environment.function = entered.enter_context(
            Function.of_resource(
                resource, folder=task, layers=[core_layer(), *wheels], around=around, python=python, **limits
            )
        )
        return environment

    def _index(self, function: Resource, url: str) -> dict[str, str]:
        """The domain's address, under whatever name the template tells it."""
        endpoint = self.deployment.resolve({"Fn::GetAtt": [self._domain.id, "DomainEndpoint"]}, self._domain.stack)
        told = function.get("Environment", {}).get("Variables", {})
        return {name: url for name, value in told.items() if value == f"https://{endpoint}"}

    @property
    def _domain(self) -> Resource:
        return self.deployment.one("AWS::OpenSearchService::Domain")

    def table(self, named: str) -> str:
        """The name of a table."""
        return self.deployment.one("AWS::DynamoDB::Table", named).ref

    def put(self, item: Item) -> str:
        """An owner writes an item; its id."""
        self.dynamodb.put_item(TableName=self.table("Registry"), Item=to_row(item))
        return f"{item['namespace']}/{item['name']}"

    def publish(self, item: Item) -> str:
        """The same, and everything runs its course."""
        id = self.put(item)
        self.settle()
        return id

    def remove(self, id: str) -> None:
        """An owner takes an item out."""
        self.dynamodb.delete_item(TableName=self.table("Registry"), Key=_key(id))

    def trust(self, id: str, value: int | None) -> None:
        """An operator says how much an item is trusted, or takes that back."""
        if value is None:
            self.dynamodb.delete_item(TableName=self.table("Trust"), Key=_key(id))
        else:
            self.dynamodb.put_item(TableName=self.table("Trust"), Item={**_key(id), "trust": {"N": str(value)}})

    def trust_namespace(self, namespace: str, **assigned: Any) -> None:
        """An operator assigns trust or a verified provider to a namespace and all below it, or takes both back."""
        key = to_row({"namespace": f"{namespace}.*", "name": "*"})
        if assigned:
            self.dynamodb.put_item(TableName=self.table("Trust"), Item={**key, **to_row(assigned)})
        else:
            self.dynamodb.delete_item(TableName=self.table("Trust"), Key=key)

    def admit(self, caller: str, *audiences: str) -> None:
        """An operator says which audiences a role belongs to."""
        row = to_row({"caller": caller, "audiences": list(audiences)})
        self.dynamodb.put_item(TableName=self.table("Callers"), Item=row)

    def enrich(self, event: Event) -> Invocation:
        """A queue hands a batch to its function; what enrichment tells the bus goes there."""
        if event["Records"][0]["eventSourceARN"].endswith("-reports"):
            return self.learning.function.invoke(event)
        invocation = self.offline.function.invoke(event)
        self.path.put_events(self.offline.recorder.take_entries())
        return invocation

    def _carry(self, event: Event) -> tuple[list[dict[str, Any]], Any]:
        invocation = self.streams.function.invoke(event)
        if invocation.error is not None:
            self.path.put_events(self.streams.recorder.take_entries())
            raise Failed(invocation.error)
        return self.streams.recorder.take_entries(), invocation.response

    def settle(self) -> None:
        """Let everything that was written run its course, and be seen by searches."""
        self.path.run(self.enrich)
        self.refresh()

    def night(self) -> list[Any]:
        """What repairs on its own every night runs until it is done; the outputs. Others test versions."""
        return [self._execute(machine, given) for machine, given in started_by_schedule(self.deployment)]

    def deployed(self, status: str = "UPDATE_COMPLETE") -> list[Any]:
        """CloudFormation says that the stack is in this state; the outputs of what that starts."""
        stack = self._domain.stack
        event = {
            "source": "aws.cloudformation",
            "detail-type": "CloudFormation Stack Status Change",
            "detail": {
                "stack-id": self.deployment.resolve({"Ref": "AWS::StackId"}, stack),
                "status-details": {"status": status, "status-reason": ""},
                "client-request-token": "token",
            },
        }
        starts = started_by_event(self.deployment, event)
        return [self._execute(machine, given) for machine, given in starts if given["task"] != "versions"]

    def maintain(self, task: str, **given: Any) -> Any:
        """An operator starts a task; its output."""
        machine = self.deployment.one("AWS::StepFunctions::StateMachine", "Repair")
        return self._execute(machine, {"task": task, **given})

    def _execute(self, machine: Resource, given: Any) -> Any:
        def invoke(arn: str, event: Any) -> Invocation:
            assert arn == self.deployment.one("AWS::Lambda::Function", "Maintenance").arn
            invocation = self.repair.function.invoke(event)
            self.path.put_events(self.repair.recorder.take_entries())
            return invocation

        self.execution = StateMachine(self.deployment, machine, invoke)
        return self.execution.run(given)

    def redrive(self, *, times: int = 5) -> None:
        """An operator redrives dead-letter queues, until they stay empty."""
        for _ in range(times):
            if not self.path.redrive():
                return
            self.settle()

    def refresh(self) -> None:
        """Let searches see what was written; in an account that is a second's wait."""
        self._opensearch("POST", f"/{ALIAS}-*/_refresh")

    def weather(self, play: Play | None) -> None:
        """The faults of calls of both functions from now on."""
        for each in self.environments:
            each.weather = play

    def profile(self, id: str) -> Item | None:
        """The row of Profiles."""
        found = self.dynamodb.get_item(TableName=self.table("Profiles"), Key=_key(id), ConsistentRead=True)
        return from_row(found["Item"]) if "Item" in found else None

    def profiles(self) -> dict[str, Item]:
        """All rows of Profiles that are profiles."""
        pages = self.dynamodb.get_paginator("scan").paginate(TableName=self.table("Profiles"), ConsistentRead=True)
        rows = [from_row(row) for page in pages for row in page["Items"]]
        return {f"{row['namespace']}/{row['name']}": row for row in rows if row.get("row") == "profile"}

    def indexed(self) -> list[Item]:
        """All documents behind the alias, tombstones included."""
        body = {"size": 10_000, "query": {"match_all": {}}}
        answer = self._opensearch("POST", f"/{ALIAS}/_search", body)
        return [hit["_source"] for hit in answer["hits"]["hits"]]

    def memory(self) -> list[Item]:
        """All remembered requests."""
        self._opensearch("POST", "/memory/_refresh")
        answer = self._opensearch("POST", "/memory/_search", {"size": 1_000, "query": {"match_all": {}}})
        return [hit["_source"] for hit in answer["hits"]["hits"]]

    def discover(
        self, query: str, *, caller: str = NOBODY, vouched: Mapping[str, str] | None = None, **more: Any
    ) -> Reply:
        """The response to an agent that signs as this session, or for whom an authorizer vouches."""
        return self.ask("POST", "/discover", {"query": query, **more}, caller=caller, vouched=vouched)

    def look_up(self, id: str, *, caller: str = NOBODY) -> Reply:
        """The response to an agent that asks for one capability."""
        return self.ask("GET", f"/capabilities/{quote(id)}", caller=caller)

    def ask(
        self,
        method: str,
        path: str,
        content: Any = None,
        *,
        caller: str = NOBODY,
        vouched: Mapping[str, str] | None = None,
    ) -> Reply:
        """A request to the REST API, signed unless an authorizer vouches for who sent it.

        It is repeated as a 503 says: on a busy machine a search may miss its budget.
        """
        route = _route(path)
        if (method, route) not in self.routes:
            return Reply(403, {}, {"message": "Missing Authentication Token"})
        event = {
            "resource": route,
            "path": path,
            "httpMethod": method,
            "headers": {"Content-Type": "application/json", "Host": f"abc.execute-api.{REGION}.amazonaws.com"},
            "queryStringParameters": None,
            "pathParameters": {"id": path.removeprefix("/capabilities/")} if route.endswith("{id+}") else None,
            "requestContext": {
                "resourcePath": route, "httpMethod": method, "path": f"/live{path}", "stage": "live",
                "domainName": f"abc.execute-api.{REGION}.amazonaws.com",
                "accountId": ACCOUNT, "requestId": "request", "identity": {"userArn": None if vouched else caller},
                **({"authorizer": dict(vouched)} if vouched else {}),
            },
            "body": None if content is None else json.dumps(content),
            "isBase64Encoded": False,
        }  # fmt: skip
        answering = {"Discovery": self.online, "Feedback": self.feedback}[self.routes[method, route]]
        for _ in range(_TRIES):
            reply = _reply(answering.function.invoke(event))
            if reply.status != 503:
                break
            assert reply.headers["Retry-After"] == "1"
        return reply

    def drop_indices(self) -> None:
        """Delete every index of ours."""
        there = self._opensearch("GET", f"/_cat/indices/{ALIAS}-*,memory-*?format=json&expand_wildcards=all")
        for each in there:
            self._opensearch("DELETE", f"/{each['index']}")

    def _opensearch(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.servers.opensearch + path, data, {"Content-Type": "application/json"}, method=method)
        with urlopen(request) as answer:
            return json.load(answer)


def _reply(invocation: Invocation) -> Reply:
    if invocation.error is not None:
        return Reply(502, {}, {"message": "Internal server error", "error": dict(invocation.error)})
    response = invocation.response
    return Reply(response["statusCode"], response["headers"], json.loads(response["body"]))


def _key(id: str) -> Item:
    namespace, _, name = id.partition("/")
    return {"namespace": {"S": namespace}, "name": {"S": name}}


def _route(path: str) -> str:
    below = {"/capabilities/": "{id+}", "/agents/": "{identifier+}"}
    return next((f"{start}{rest}" for start, rest in below.items() if path.startswith(start)), path)


def _routes(deployment: Deployment) -> Iterable[tuple[tuple[str, str], str]]:
    """Method and path of everything the REST API answers, with the function behind it: discovery by its alias."""
    resources = {resource.id: resource for resource in deployment.all("AWS::ApiGateway::Resource")}
    discovery = deployment.one("AWS::Lambda::Function", "Discovery").ref
    aliases = {alias.ref: alias["FunctionName"] for alias in deployment.all("AWS::Lambda::Alias")}
    behind = {alias: "Discovery" for alias, function in aliases.items() if function == discovery}
    behind[deployment.one("AWS::Lambda::Function", "Feedback").arn] = "Feedback"
    for method in deployment.all("AWS::ApiGateway::Method"):
        invoked = str(method["Integration"]["Uri"]).partition("/functions/")[2].partition("/invocations")[0]
        path, at = "", method.raw["ResourceId"]
        while "Ref" in at:
            path, at = f"/{resources[at['Ref']].raw['PathPart']}{path}", resources[at["Ref"]].raw["ParentId"]
        if behind.get(invoked) != ("Feedback" if path == "/feedback" else "Discovery"):
            raise Misconfigured(f"{method.id}: {invoked} does not answer {path}")
        yield (method.raw["HttpMethod"], path), behind[invoked]


def item(name: str, description: str, **more: Any) -> Item:
    """A registration."""
    return {"namespace": "com.acme", "name": name, "kind": "tool", "description": description, **more}


Make = Callable[..., World]
"""Makes the worlds of a test: of the templates of a `context`, with a `change` to their resources."""
