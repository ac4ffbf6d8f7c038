"""Stands in for AWS's control planes on loopback: every service and protocol that botocore's own models describe.

A test says what operations answer; an answer that the service's model does not allow, and a call that nothing answers,
are mistakes of the test.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Self, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

from botocore.model import OperationModel, ServiceModel, Shape
from botocore.session import Session
from botocore.validate import ParamValidator

from tests.aws.listening import LoopbackServer, QuietConnection

Params: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Refuse:
    """An error of the service."""

    code: str
    message: str = "The service refused."
    status: int = 400


Answer: TypeAlias = Mapping[str, Any] | Refuse
Play: TypeAlias = Callable[[Params], Answer]
"""The answer to the parameters of a call."""

_SIGNED_AS = {
    "bedrock": ("bedrock", "bedrock-runtime"),
    "cloudcontrolapi": ("cloudcontrol",),
    "servicequotas": ("service-quotas",),
}
"""The services, as botocore calls them, by the name in a signature, where it is another."""
_SCOPE = re.compile(r"Credential=[^/]+/\d+/([\w-]+)/([\w-]+)/aws4_request")


class ControlPlane:
    """Serves while it is entered; leaving raises the first mistake."""

    def __init__(self, answers: Mapping[str, Answer | Play]) -> None:
        """`answers` by `service.Operation`, as botocore spells both."""
        self.answers = dict(answers)
        self.calls: list[tuple[str, str, Params]] = []
        """(region, `service.Operation`, parameters) of every call."""
        self.mistakes: list[BaseException] = []

    def __enter__(self) -> Self:
        self._listener = _Listener(("127.0.0.1", 0), self)
        self._loop = threading.Thread(target=self._listener.serve_forever, args=(0.02,), daemon=True)
        self._loop.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown()
        self._loop.join()
        self._listener.server_close()
        if self.mistakes and kind is None:
            raise self.mistakes[0]

    @property
    def environment(self) -> dict[str, str]:
        """The variables that lead every AWS client here."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._listener.server_address[1]}",
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def decide(self, method: str, target: str, headers: Mapping[str, str], content: bytes) -> tuple[int, str, bytes]:
        """Status, content type and body of the answer."""
        scope = _SCOPE.search(headers.get("Authorization") or "")
        assert scope, "the call is not signed"
        region, signed_as = scope.groups()
        operation, params = _read(signed_as, method, target, headers, content)
        name = f"{operation.service_model.service_name}.{operation.name}"
        self.calls.append((region, name, params))
        assert name in self.answers, f"nothing answers {name} {dict(params)}"
        answer = self.answers[name]
        said = answer(params) if callable(answer) else answer
        if isinstance(said, Refuse):
            return said.status, "application/json", _refusal(operation, said)
        return 200, "application/json", _written(operation, said)


class _Listener(LoopbackServer):
    def __init__(self, address: tuple[str, int], owner: ControlPlane) -> None:
        self.owner = owner
        self.mistakes = owner.mistakes
        super().__init__(address, _Handler)


class _Handler(QuietConnection, BaseHTTPRequestHandler):
    server: _Listener

    def _answer(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            status, kind, body = self.server.owner.decide(self.command, self.path, self.headers, content)
        except Exception as mistake:  # a test's own mistake, which leaving raises
            self.server.owner.mistakes.append(mistake)
            status, kind, body = 400, "application/json", b'{"__type": "MistakeOfTheTest", "message": "see the test"}'
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = _answer  # noqa: N815  as the standard library wants them called


@cache
def _model(service: str) -> ServiceModel:
    return Session().get_service_model(service)


def _read(
    signed_as: str, method: str, target: str, headers: Mapping[str, str], content: bytes
) -> tuple[OperationModel, Params]:
    """The operation of a request, and its parameters."""
    services = _SIGNED_AS.get(signed_as, (signed_as,))
    match _model(services[0]).metadata["protocol"]:
        case "json":
            operation = (headers.get("X-Amz-Target") or "").rpartition(".")[2]
            return _model(services[0]).operation_model(operation), json.loads(content)
        case "query":
            form = dict(parse_qsl(content.decode()))
            return _model(services[0]).operation_model(form.pop("Action")), form
    path = urlsplit(target).path
    for operation, pattern in (each for service in services for each in _paths(service)):
        found = pattern.fullmatch(path)
        if operation.http["method"] == method and found:
            return operation, {**_body(content), **{name: unquote(text) for name, text in found.groupdict().items()}}
    raise LookupError(f"{signed_as} has no {method} {path}")


@cache
def _paths(service: str) -> list[tuple[OperationModel, re.Pattern[str]]]:
    model = _model(service)
    operations = [model.operation_model(name) for name in model.operation_names]
    return [
        (each, re.compile(re.sub(r"\{(\w+)\+?\}", r"(?P<\1>[^/]+)", each.http["requestUri"]))) for each in operations
    ]


def _body(content: bytes) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(content) if content else {}
    return read


def _written(operation: OperationModel, answer: Mapping[str, Any]) -> bytes:
    shape = operation.output_shape
    if shape is None:
        return b""
    report = ParamValidator().validate(answer, shape)
    assert not report.has_errors(), f"{operation.name}: {report.generate_report()}"
    if payload := shape.serialization.get("payload"):
        content = answer[payload]
        return content if isinstance(content, bytes) else json.dumps(content).encode()
    if operation.service_model.metadata["protocol"] != "query":
        return json.dumps(answer, default=datetime.isoformat).encode()
    inner = "".join(_xml(answer, shape))
    wrapper = shape.serialization.get("resultWrapper", f"{operation.name}Result")
    return f"<{operation.name}Response><{wrapper}>{inner}</{wrapper}></{operation.name}Response>".encode()


def _xml(value: Any, shape: Shape) -> Iterator[str]:
    match shape.type_name:
        case "structure":
            for name, each in value.items():
                yield f"<{name}>{''.join(_xml(each, shape.members[name]))}</{name}>"
        case "list":
            for each in value:
                yield f"<member>{''.join(_xml(each, shape.member))}</member>"
        case "timestamp":
            yield value.isoformat()
        case _:
            yield escape(str(value))


def _refusal(operation: OperationModel, said: Refuse) -> bytes:
    if operation.service_model.metadata["protocol"] == "query":
        error = f"<Code>{said.code}</Code><Message>{escape(said.message)}</Message>"
        return f"<ErrorResponse><Error>{error}</Error></ErrorResponse>".encode()
    return json.dumps({"__type": said.code, "message": said.message}).encode()
