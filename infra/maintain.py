"""Start a maintenance task of a deployment and wait until it is done (`make maintain TASK=reconcile`)."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mats.adapters.aws import call, client
from mats.domain.errors import DependencyFailed

TASKS = ("reconcile", "reindex", "rollback", "retire", "backfill", "relearn", "versions")
_POLL_S = 5.0


class MaintenanceFailed(Exception):
    """The execution ended without its output; the message says how."""


def maintain(
    machines: Any, arn: str, event: dict[str, Any], *, sleep: Callable[[float], None] = time.sleep
) -> dict[str, Any]:
    """The output of an execution of the state machine with this ARN and input.

    Raises MaintenanceFailed: it failed, or was stopped; DependencyFailed: no answer, and the execution goes on.
    """
    ask = partial(call, f"state machine {arn.rpartition(':')[2]}")
    run = ask(lambda: machines.start_execution(stateMachineArn=arn, input=json.dumps(event)))["executionArn"]
    while (found := ask(lambda: machines.describe_execution(executionArn=run)))["status"] == "RUNNING":
        sleep(_POLL_S)
    if found["status"] != "SUCCEEDED":
        said = ": ".join(filter(None, (found.get("error"), found.get("cause"))))
        raise MaintenanceFailed(f"{run}: {found['status']}{f', {said}' if said else ''}")
    output: dict[str, Any] = json.loads(found["output"])
    return output


def main(arguments: Sequence[str] | None = None) -> None:
    """Start a maintenance task in AWS and wait until it is done; stopping this command does not stop the task."""
    parser = argparse.ArgumentParser(prog="make maintain", description=main.__doc__)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--name", default="mats", help="of the deployment, as in its context; default: mats")
    parser.add_argument("--region", default="", help="default: AWS's own setting")
    parser.add_argument("--per-minute", type=int, help="for backfill: capabilities sent to enrichment in a minute")
    given = parser.parse_args(arguments)
    event = {"task": given.task, **({"per_minute": given.per_minute} if given.per_minute else {})}
    try:
        clients = {
            name: client(name, region=given.region, timeout_s=10, attempts=5, connections=1)
            for name in ("sts", "stepfunctions")
        }
        who = call("AWS STS", clients["sts"].get_caller_identity)
        region, partition = clients["stepfunctions"].meta.region_name, who["Arn"].split(":")[1]
        arn = f"arn:{partition}:states:{region}:{who['Account']}:stateMachine:{given.name}-maintenance"
        output = maintain(clients["stepfunctions"], arn, event)
    except (DependencyFailed, MaintenanceFailed) as error:
        sys.exit(str(error))
    sys.stdout.write(f"{json.dumps(output)}\n")


if __name__ == "__main__":
    main()
