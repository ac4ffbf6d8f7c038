"""LocalStack's core in this process, with stand-ins for what it would download or start in Docker.

It has a Python environment of its own, which `make rehearse` makes: nothing else imports this. Tables are moto's, a
domain has a name and no nodes, and functions are stored and never run.
"""

import sys
from functools import partial, wraps
from types import SimpleNamespace
from typing import Any

from localstack.runtime.main import main
from localstack.services.cloudformation import provider as formation
from localstack.services.cloudformation.provider import ChangeSetNotFoundException, CloudformationProvider
from localstack.services.dynamodb.server import DynamodbServer
from localstack.services.lambda_.invocation import version_manager
from localstack.services.opensearch import provider as opensearch
from localstack.services.stepfunctions.resource_providers.aws_stepfunctions_statemachine import (
    StepFunctionsStateMachineProvider,
)
from moto.server import ThreadedMotoServer


class Domains:
    """Domains that are there at once and hold nothing."""

    def create(self, **_: Any) -> SimpleNamespace:
        return SimpleNamespace(url="http://127.0.0.1:9", is_up=lambda: True)

    def remove(self, arn: str) -> None:
        pass


class Functions:
    """Versions that are ready at once."""

    @staticmethod
    def prepare_version(version: object) -> None:
        pass

    cleanup_version = prepare_version


_delete = CloudformationProvider.delete_change_set
_update = StepFunctionsStateMachineProvider.update


@wraps(_delete)
def delete_what_there_is(*args: Any, **kwargs: Any) -> Any:
    """CloudFormation deletes a change set that is not there; LocalStack refuses, and the CDK gives up."""
    try:
        return _delete(*args, **kwargs)
    except ChangeSetNotFoundException:
        return {}


def update_and_keep_name(self: StepFunctionsStateMachineProvider, request: Any) -> Any:
    """LocalStack's own update of a state machine forgets its name, which policies refer to."""
    done = _update(self, request)
    done.resource_model = {**(request.previous_state or {}), **done.resource_model}
    return done


def stand_in() -> None:
    """Put the stand-ins in place, before any service starts."""
    moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    DynamodbServer.url = property(lambda self: f"http://{host}:{port}")
    DynamodbServer.start_dynamodb = lambda self: True
    opensearch.cluster_manager = Domains
    version_manager.get_runtime_executor = lambda: Functions
    # otherwise it executes a change set of a deleted stack of this name
    formation.find_change_set = partial(formation.find_change_set, active_only=True)
    CloudformationProvider.delete_change_set = delete_what_there_is
    StepFunctionsStateMachineProvider.update = update_and_keep_name


if __name__ == "__main__":
    stand_in()
    sys.exit(main())
