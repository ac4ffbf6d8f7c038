"""Observers of the local service beside its log: metrics for Prometheus, and OpenTelemetry spans."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from mats.domain.errors import NotInstalled
from mats.ports import Observer, ServiceState
from mats.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """The observers of a local service; `close` sends what is waiting, for about a second."""

    observers: Sequence[Observer]
    render_metrics: Callable[[], tuple[bytes, str]]
    """The metrics and their content type. Raises DependencyFailed: the package is not installed."""
    wants_answers: bool = False
    """True if an observer reads the answers of a request."""
    close: Callable[[], None] = lambda: None


def open_telemetry(settings: Settings, read_state: Callable[[], ServiceState]) -> Telemetry:
    """The telemetry that the settings ask for.

    Raises:
        DependencyFailed: spans are asked for, and their packages are not installed.
    """
    observers, render = _metrics(read_state)
    if not settings.otel:
        return Telemetry(observers=observers, render_metrics=render)
    try:
        from mats.adapters.spans import Spans, close_provider, exporting_provider  # noqa: PLC0415 - the extra `otel`
    except ModuleNotFoundError as error:
        raise NotInstalled(
            f"MATS_OTEL needs {error.name}, which is not installed: install mats with the extra `otel`"
        ) from error
    provider = exporting_provider()
    spans = Spans(provider, model_provider="openai" if settings.llm_url else "aws.bedrock")
    return Telemetry(
        observers=[*observers, spans],
        render_metrics=render,
        wants_answers=True,
        close=partial(close_provider, provider),
    )


def _metrics(read_state: Callable[[], ServiceState]) -> tuple[list[Observer], Callable[[], tuple[bytes, str]]]:
    try:
        from mats.adapters.prometheus import CONTENT_TYPE, PrometheusMetrics  # noqa: PLC0415 - for who serves
    except ModuleNotFoundError as error:
        message = f"/metrics needs {error.name}, which is not installed: pip install 'mats[local]'"

        def refuse() -> tuple[bytes, str]:
            raise NotInstalled(message)

        return [], refuse
    metrics = PrometheusMetrics(read_state)
    return [metrics], lambda: (metrics.render(), CONTENT_TYPE)
