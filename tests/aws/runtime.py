"""A Lambda execution environment on loopback: the runtime API, and the function under the real runtime client.

It does not play freezing between invocations, memory limits or the share of a processor.
"""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Self

from tests.aws.deployment import REGION, Resource
from tests.aws.listening import LoopbackServer, QuietConnection

PAYLOAD_LIMIT = 6 * 1024 * 1024  # bytes, of an event and of a response, when invoked synchronously
INHERITED = ("PATH", "LANG")
RESERVED = {"_HANDLER", "_X_AMZN_TRACE_ID", "TZ"}  # and all that begin with AWS_ but these:
ALLOWED = {"AWS_LAMBDA_EXEC_WRAPPER", "AWS_NODEJS_CONNECTION_REUSE_ENABLED", "AWS_STS_REGIONAL_ENDPOINTS"}

ChangeResult = tuple[str, Any]


@dataclass(frozen=True)
class Invocation:
    """The outcome of an event: a response or an error, as Lambda's caller sees it."""

    response: Any = None
    error: Mapping[str, Any] | None = None
    ms: float = 0.0  # From handing over the event to its outcome
    cold_ms: float | None = None
    """From the start of the process to its first request for an event; None when it was warm."""
    lines: tuple[str, ...] = ()  # Its output meanwhile, and during a cold start

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        return json_records(self.lines)

    @cached_property
    def metrics(self) -> dict[str, list[float]]:
        """Values by metric, from the lines in embedded metric format."""
        return metrics(self.lines)


class Function:
    """One execution environment, started by the first event and started again after it died.

    `environment` is what the template gives; `around` is what stands for the account, such as AWS_ENDPOINT_URL_DYNAMODB
    or another MATS_INDEX_ENDPOINT, and wins. Of this process's own environment it sees PATH and LANG only.
    Events from several threads wait for each other: Lambda would start more environments, a test makes more Functions.
    """

    def __init__(
        self,
        *,
        folder: Path,
        handler: str = "handler.handle",
        environment: Mapping[str, str] | None = None,
        around: Mapping[str, str] | None = None,
        layers: Sequence[Path] = (),
        timeout_s: float = 30.0,
        init_s: float = 30.0,
        memory_mb: int = 512,
        name: str = "function",
        snap_start: bool = False,
        python: str = sys.executable,
    ) -> None:
        for variable in environment or {}:
            if variable in RESERVED or (variable.startswith("AWS_") and variable not in ALLOWED):
                raise ValueError(f"Lambda refuses {variable}: it sets it itself")
        self.name, self.timeout_s, self._init_s = name, timeout_s, init_s
        self._command = [python, "-m", "awslambdaric", handler]
        self._folder = folder.resolve()
        self._variables = {
            **{variable: os.environ[variable] for variable in INHERITED if variable in os.environ},
            "_HANDLER": handler,
            "AWS_ACCESS_KEY_ID": "ASIAEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "example",
            "AWS_SESSION_TOKEN": "example",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
            "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(memory_mb),
            "AWS_LAMBDA_FUNCTION_NAME": name,
            "AWS_LAMBDA_FUNCTION_VERSION": "1" if snap_start else "$LATEST",
            "AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start" if snap_start else "on-demand",
            "AWS_LAMBDA_LOG_FORMAT": "JSON",
            "AWS_LAMBDA_LOG_LEVEL": "INFO",  # what Lambda sets by default where the format is JSON
            "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{name}",
            "AWS_LAMBDA_LOG_STREAM_NAME": "local",
            "AWS_EC2_METADATA_DISABLED": "true",
            "HOME": str(self._folder),  # no settings of this machine's user
            "LAMBDA_TASK_ROOT": str(self._folder),
            "PYTHONDONTWRITEBYTECODE": "1",  # /var/task and /opt are read-only
            "PYTHONPATH": os.pathsep.join(str(layer.resolve()) for layer in layers),
            "TZ": ":UTC",
            **(environment or {}),
            **(around or {}),
        }
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  closed by stop()
        self._turn = threading.Lock()
        self._sandbox: _Sandbox | None = None

    @classmethod
    def of_resource(cls, resource: Resource, *, folder: Path, **options: Any) -> Self:
        """The function as its AWS::Lambda::Function has it: handler, environment, time limit, memory; options win."""
        logging = resource.get("LoggingConfig", {})
        if logging.get("LogFormat") != "JSON":
            raise ValueError(f"{resource.id} does not log JSON: {logging}")
        snap_start = resource.get("SnapStart", {}).get("ApplyOn") == "PublishedVersions"
        return cls(
            folder=folder,
            handler=resource["Handler"],
            environment=resource.get("Environment", {}).get("Variables", {}),
            memory_mb=int(resource.get("MemorySize", 128)),
            name=resource.ref,
            **{"snap_start": snap_start, "timeout_s": float(resource.get("Timeout", 3)), **options},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def lines(self) -> tuple[str, ...]:
        return self._written(0)

    @property
    def pid(self) -> int | None:
        sandbox = self._sandbox
        return sandbox.process.pid if sandbox and sandbox.alive else None

    def invoke(self, event: Any) -> Invocation:
        body = json.dumps(event).encode()
        if len(body) > PAYLOAD_LIMIT:
            raise ValueError(f"an event of {len(body)} bytes: Lambda takes {PAYLOAD_LIMIT}")
        with self._turn:
            start = self._size()
            cold_ms: float | None = None
            if not (self._sandbox and self._sandbox.alive):
                self._discard()
                self._sandbox = _Sandbox(self._command, self._folder, self._variables, self._output.fileno())
                cold_ms = self._sandbox.start(self._init_s)
            begun = time.perf_counter()
            kind, content = self._sandbox.run(body, self.timeout_s, self.name)
            ms = (time.perf_counter() - begun) * 1000
            lines = self._written(start)
            if kind == "error" and content["errorType"] == "Function.ResponseSizeTooLarge":
                self.kill()  # its client gives up by itself, but not at once
        if kind == "response":
            return Invocation(response=content, ms=ms, cold_ms=cold_ms, lines=lines)
        return Invocation(error=content, ms=ms, cold_ms=cold_ms, lines=lines)

    def kill(self) -> None:
        """End the process at once, from any thread; an event it was at ends in an error, the next one starts anew."""
        if sandbox := self._sandbox:
            sandbox.kill()

    def stop(self) -> None:
        self._discard()
        self._output.close()

    def _discard(self) -> None:
        if self._sandbox:
            self._sandbox.close()
            self._sandbox = None

    def _size(self) -> int:
        return os.fstat(self._output.fileno()).st_size

    def _written(self, start: int) -> tuple[str, ...]:
        text = os.pread(self._output.fileno(), self._size() - start, start).decode(errors="replace")
        return tuple(text.splitlines())


class _Sandbox:
    """A process and the runtime API it talks to."""

    def __init__(self, command: list[str], folder: Path, variables: dict[str, str], output: int) -> None:
        self.events: queue.Queue[tuple[str, bytes, int] | None] = queue.Queue()
        self.outcomes: queue.Queue[ChangeResult] = queue.Queue()
        self.asked = threading.Event()
        self.asked_at = 0.0
        self._api = _Api(self)
        self._api.start()
        self._begun = time.perf_counter()
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            env={**variables, "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self._api.server_address[1]}"},
        )  # fmt: skip
        self._watch = threading.Thread(target=self._wait, daemon=True)
        self._watch.start()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def start(self, patience_s: float) -> float | None:
        """Milliseconds until it first asked for an event; None when it never did."""
        if not self.asked.wait(patience_s):
            self.outcomes.put(("error", _fault("Sandbox.Timedout", f"Init timed out after {patience_s:.2f} seconds")))
            self.kill()
        return (self.asked_at - self._begun) * 1000 if self.asked_at else None

    def run(self, body: bytes, timeout_s: float, name: str) -> ChangeResult:
        """The outcome of this event; an error where it failed to start."""
        request = str(uuid.uuid4())
        self.events.put((request, body, int((time.time() + timeout_s) * 1000)))
        try:
            return self.outcomes.get(timeout=timeout_s)
        except queue.Empty:
            self.kill()
            return ("error", _fault("Sandbox.Timedout", f"{request} Task timed out after {timeout_s:.2f} seconds"))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        self._watch.join()
        self._api.stop()

    def _wait(self) -> None:
        code = self.process.wait()
        how = f"signal: {-code}" if code < 0 else f"exit status {code}"
        self.outcomes.put(("error", _fault("Runtime.ExitError", f"Runtime exited with error: {how}")))
        self.events.put(None)
        self.asked.set()


def _fault(kind: str, message: str) -> dict[str, Any]:
    return {"errorType": kind, "errorMessage": message}


class _Api(LoopbackServer):
    def __init__(self, sandbox: _Sandbox) -> None:
        self.sandbox = sandbox
        super().__init__(_Handler)


class _Handler(QuietConnection, BaseHTTPRequestHandler):
    server: _Api

    def do_GET(self) -> None:
        """The next event, or the go-ahead after a restore."""
        sandbox = self.server.sandbox
        if self.path.endswith("/runtime/restore/next"):
            self.reply(200, b"{}")
            return
        if not sandbox.asked_at:
            sandbox.asked_at = time.perf_counter()
        sandbox.asked.set()
        event = sandbox.events.get()
        if event is None:
            self.close_connection = True
            return
        request, body, deadline_ms = event
        self.reply(
            200,
            body,
            {
                "Content-Type": "application/json",
                "Lambda-Runtime-Aws-Request-Id": request,
                "Lambda-Runtime-Deadline-Ms": str(deadline_ms),
                "Lambda-Runtime-Invoked-Function-Arn": f"arn:aws:lambda:{REGION}:123456789012:function:local",
                "Lambda-Runtime-Trace-Id": "Root=1-00000000-000000000000000000000000",
            },
        )

    def do_POST(self) -> None:
        """A response, an error, or an error of the start."""
        body = self.content()
        outcomes = self.server.sandbox.outcomes
        if not self.path.endswith("/response"):
            outcomes.put(("error", json.loads(body)))
            self.reply(202, b"{}")
        elif len(body) > PAYLOAD_LIMIT:
            fault = f"Response payload size ({len(body)} bytes) exceeded maximum allowed payload size"
            outcomes.put(("error", _fault("Function.ResponseSizeTooLarge", fault)))
            self.reply(413, b"{}")
        else:
            outcomes.put(("response", json.loads(body)))
            self.reply(202, b"{}")


def json_records(lines: Sequence[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line in lines:
        with suppress(json.JSONDecodeError):
            record = json.loads(line)
            if isinstance(record, dict):
                found.append(record)
    return found


def metrics(lines: Sequence[str]) -> dict[str, list[float]]:
    """Values by metric, in the order they were written, from lines in CloudWatch's embedded metric format."""
    values: dict[str, list[float]] = {}
    for record in json_records(lines):
        for directive in record.get("_aws", {}).get("CloudWatchMetrics", ()):
            for metric in directive["Metrics"]:
                value = record[metric["Name"]]
                values.setdefault(metric["Name"], []).extend(value if isinstance(value, list) else [value])
    return values
