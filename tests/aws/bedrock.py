"""Amazon Bedrock's runtime on loopback: as strict as the service, and it plays whatever a test needs of it.

What it refuses is in `bedrock_rules`, what it answers by itself in `bedrock_model`.
"""

import argparse
import json
import math
from email.message import Message
from functools import cache
from typing import Any

from tests.aws.bedrock_model import Exchange, converse_reply, thought, tool_reply
from tests.aws.bedrock_rules import Contract
from tests.aws.listening import serve
from tests.aws.model_server import Act, Answer, Cut, Drip, ModelServer, Play, Raw, Refuse, Stall

__all__ = [
    "Act",
    "Answer",
    "BedrockServer",
    "Cut",
    "Drip",
    "Exchange",
    "Play",
    "Raw",
    "Refuse",
    "Stall",
    "converse_reply",
    "tool_reply",
]


@cache
def _contract() -> Contract:
    return Contract()


class BedrockServer(ModelServer):
    """Bedrock's runtime. `delay_s` is for Converse; it embeds at once."""

    def __init__(self, play: Play | None = None, *, delay_s: float = 0.0, port: int = 0, record: bool = True) -> None:
        super().__init__(play, delay_s=delay_s, port=port, record=record)
        self.contract = _contract()

    def client_environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": self.url,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def read(self, method: str, path: str, headers: Message, content: bytes) -> tuple[str, str, dict[str, Any]]:
        return self.contract.read(method, path, headers, content)

    def own_answer(self, exchange: Exchange) -> Answer:
        return Answer(thought(exchange), self._delay_s if exchange.operation == "Converse" else 0.0)

    def complaint_about(self, exchange: Exchange, body: Any) -> str:
        return self.contract.complaint_about_reply(body) if exchange.operation == "Converse" else ""

    def refusal(self, act: Refuse) -> Raw:
        """An error under the status that the service gives its code."""
        kind = f"{act.code}:http://internal.amazon.com/coral/com.amazon.bedrock/"
        status = act.status or self.contract.status.get(act.code, 400)
        return Raw(json.dumps({"message": act.message}).encode(), status, headers={"x-amzn-ErrorType": kind})


def main() -> None:
    parser = argparse.ArgumentParser(description="Amazon Bedrock's runtime on loopback")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay-ms", type=float, default=0.0, help="how long the model takes for an answer")
    trouble = parser.add_mutually_exclusive_group()
    trouble.add_argument("--dead", action="store_true", help="every Converse is a 503")
    trouble.add_argument("--stall", action="store_true", help="no Converse is ever answered")
    chosen = parser.parse_args()
    act = Refuse("ServiceUnavailableException") if chosen.dead else Stall(math.inf, before_headers=True)
    troubled = chosen.dead or chosen.stall
    serve(
        BedrockServer(
            lambda exchange: act if troubled and exchange.operation == "Converse" else None,
            delay_s=chosen.delay_ms / 1000,
            port=chosen.port,
            record=False,
        )
    )


if __name__ == "__main__":
    main()
