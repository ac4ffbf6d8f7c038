"""Published versions of a Lambda function."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mats.adapters.aws import call, client, unexpected_response

_TIMEOUT_S = 10


class FunctionVersions:
    """The port `PublishedVersions` over AWS Lambda."""

    def __init__(self, function: str, *, region: str = "") -> None:
        """Make the client; makes no call."""
        self._function = function
        self._client = client("lambda", region=region, timeout_s=_TIMEOUT_S, attempts=5, connections=1)

    def numbers(self) -> Sequence[int]:
        every = self._pages("list_versions_by_function", "Versions")
        return [int(version["Version"]) for version in every if version["Version"] != "$LATEST"]

    def in_use(self) -> Collection[int]:
        """Those that an alias names, or sends a part of its calls to."""
        named = [
            number
            for alias in self._pages("list_aliases", "Aliases")
            for number in (alias["FunctionVersion"], *_weights(alias))
        ]
        return {int(number) for number in named if number != "$LATEST"}

    def delete(self, number: int) -> None:
        call(
            f"function {self._function}",
            partial(self._client.delete_function, FunctionName=self._function, Qualifier=str(number)),
        )

    def _pages(self, operation: str, part: str) -> Iterator[Mapping[str, Any]]:
        marker: dict[str, str] = {}
        while True:
            page = call(
                f"function {self._function}",
                partial(getattr(self._client, operation), FunctionName=self._function, **marker),
            )
            if part not in page:
                raise unexpected_response(f"function {self._function}")
            yield from page[part]
            if not page.get("NextMarker"):
                return
            marker = {"Marker": page["NextMarker"]}


def _weights(alias: Mapping[str, Any]) -> Collection[str]:
    return (alias.get("RoutingConfig") or {}).get("AdditionalVersionWeights") or {}
