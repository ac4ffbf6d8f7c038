"""The log of a function, and its cold starts. Why by Powertools, and what else was tried: docs/decisions/0108."""

import json
import os
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from aws_lambda_powertools import Logger, Metrics

from mats.settings import function_version, variable_of

Handler = Callable[[Any, Any], Any]
API, EXECUTION = "requestContext.requestId", "execution"
"""Where an event has the id that its records share with others: those of API Gateway, of the state machine."""
LOGGER = Logger(
    service="mats",  # the name of the logger that every module of mats writes to
    utc=True,
    use_rfc3339=True,  # as Lambda's own records
    json_serializer=partial(json.dumps, default=str, separators=(",", ":")),  # in ASCII: no text hides in a line
    json_deserializer=str,  # a message is a text, also one that is JSON
    xray_trace_id="",  # among the first fields: Logs Insights extracts 200 of a record
)


def observe(function: str, *, correlation: str | None = None) -> Callable[[Handler], Handler]:
    """Let every record name the function, its version and call, and count cold starts.

    `correlation` is the path in an event of an id, which records have as `correlation_id`.
    """
    LOGGER.append_keys(function=function, version=function_version())
    namespace = os.environ.get(variable_of("metrics"))  # noqa: TID251 - before settings are read

    def wrap(handle: Handler) -> Handler:
        handle = LOGGER.inject_lambda_context(handle, correlation_id_path=correlation)
        if not namespace:
            return handle
        warnings.filterwarnings("ignore", "No application metrics")  # those are flushed one by one
        counted: Handler = Metrics(namespace=namespace, service=function).log_metrics(
            handle, capture_cold_start_metric=True
        )
        return counted

    return wrap
