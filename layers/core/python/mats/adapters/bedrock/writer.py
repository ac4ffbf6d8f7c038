"""The enrichment LLM."""

from dataclasses import dataclass

from mats.adapters.bedrock.conversing import Converser, Reply
from mats.domain.describing import brief, enrichment
from mats.domain.errors import ReplyUnusable
from mats.domain.profile import Enrichment
from mats.domain.prompt import Prompt, filled
from mats.domain.registration import Registration
from mats.domain.text import first_object
from mats.ports import Written

_MAX_TOKENS = 1_200
"""Four times what a full answer takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BedrockWriter:
    """Describes a registration in one Converse call, or in two if the first reply cannot be used."""

    runtime: Converser
    name: str
    text: Prompt

    @property
    def prompt(self) -> str:
        """The hash of `prompts/enrich.md`."""
        return self.text.hash

    def describe(self, registration: Registration) -> Written:
        """The five fields as the model wrote them, not yet held against the registration.

        Raises:
            ReplyUnusable: both replies were; the message says why.
            DependencyFailed: the model did not answer.
        """
        request = filled(self.text.request, {"registration": brief(registration)})
        first = self._asked(request)
        try:
            return Written(enrichment=self._read(first), usage=first.usage)
        except ReplyUnusable as error:
            repair = filled(self.text.parts["repair"], {"error": str(error)})
            second = self._asked(request, repair)
            try:
                written = self._read(second)
            except ReplyUnusable as again:
                raise ReplyUnusable(f"the reply cannot be used: {again}; the one before: {error}") from again
            note = f"written at the second attempt; the first could not be used: {error}"
            return Written(enrichment=written, notes=(note,), usage=first.usage.plus(second.usage))

    def _asked(self, *texts: str) -> Reply:
        return self.runtime.converse(self.name, self.text, *texts, max_tokens=_MAX_TOKENS)

    def _read(self, reply: Reply) -> Enrichment:
        if reply.refused:
            raise ReplyUnusable(f"it was refused ({reply.stop})")
        if reply.cut_off:
            raise ReplyUnusable("it was cut off, so it must be shorter")
        if reply.malformed:
            raise ReplyUnusable(f"it breaks the form ({reply.stop})")
        if reply.tool and reply.tool != self.text.tool["name"]:
            raise ReplyUnusable("it calls another tool")
        return enrichment(reply.arguments if reply.tool else first_object(reply.text))
