"""The writer."""

from dataclasses import dataclass

from mats.adapters.llm.question import AskModel, ModelReply, Question
from mats.domain.capability.registration import Registration
from mats.domain.errors import ReplyUnusable
from mats.domain.prompts.prompt import ParsedReply, Prompt, brief, fill_template, parse_reply
from mats.domain.text.words import first_object
from mats.ports import NO_LABELS, Labels, Written

_MAX_TOKENS = 1_200
"""Four times the length of a complete reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmWriter:
    """Describes a registration in one call, or in two if the first reply is unusable."""

    ask: AskModel
    name: str
    text: Prompt

    @property
    def prompt(self) -> str:
        """The hash of `prompts/enrich.md`."""
        return self.text.hash

    def describe(self, registration: Registration, labels: Labels = NO_LABELS) -> Written:
        """Retry once after an unusable reply, with its fault added to the request."""
        request = fill_template(self.text.request, {"registration": brief(registration)})
        first = self._send(request, labels=labels)
        try:
            parsed = self._parse(first)
        except ReplyUnusable as error:
            repair = fill_template(self.text.parts["repair"], {"error": str(error)})
            second = self._send(request, repair, labels=labels)
            try:
                parsed = self._parse(second)
            except ReplyUnusable as again:
                raise ReplyUnusable(f"the reply cannot be used: {again}; the one before: {error}") from again
            note = f"written at the second attempt; the first could not be used: {error}"
            usage = first.usage.plus(second.usage)
            return Written(enrichment=parsed.enrichment, notes=(note, *parsed.notes), usage=usage)
        return Written(enrichment=parsed.enrichment, notes=parsed.notes, usage=first.usage)

    def _send(self, *texts: str, labels: Labels) -> ModelReply:
        return self.ask(Question(model=self.name, prompt=self.text, texts=texts, max_tokens=_MAX_TOKENS, labels=labels))

    def _parse(self, reply: ModelReply) -> ParsedReply:
        if reply.is_refusal:
            raise ReplyUnusable(f"it was refused ({reply.stop})")
        if reply.is_cut_off:
            raise ReplyUnusable("it was cut off, so it must be shorter")
        if reply.is_malformed:
            raise ReplyUnusable(f"it breaks the form ({reply.stop})")
        if reply.tool and reply.tool != self.text.tool["name"]:
            raise ReplyUnusable("it calls another tool")
        return parse_reply(reply.arguments if reply.tool else first_object(reply.text))
