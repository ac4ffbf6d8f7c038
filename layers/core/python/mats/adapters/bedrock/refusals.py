"""Errors of Bedrock that no retry resolves: the model will refuse every request of this configuration.

The code alone decides for AccessDeniedException and ResourceNotFoundException. A ValidationException is also what one
request that is too long or malformed gets, and the service gives both the same code; so its text decides, and only
texts that AWS is known to send for a model, an account or a request form count. Any other text stays an error that is
retried: a wrong guess would then cost retries, not profiles. ModelNotReadyException passes by itself.
"""

import re

from mats.domain.errors import ModelRefused

_CAUSES = {
    "AccessDeniedException": "the cause is the IAM policy of the caller (bedrock:InvokeModel on the model, and "
    "on its inference profile and every region behind it), a policy of the organisation, or a region where the model "
    "is not offered or not enabled",
    "ResourceNotFoundException": "the model does not exist in this region, has reached the end of its life, or is not "
    "enabled for this account; choose another model or enable it",
    "ValidationException": "the model cannot be called in this way, in this region or by this account; choose another "
    "model or inference profile",
}
_PERMANENT_TEXTS = re.compile(
    "|".join(
        (
            r"on-demand throughput isn.t supported",
            r"doesn.t support on-demand throughput",
            r"model identifier is invalid",
            r"model ID is not supported",
            r"could not resolve the foundation model",
            r"don.t have access to the model",
            r"account is not authorized to invoke",
            r"^operation not allowed",
            r"access to (amazon )?bedrock models is not allowed",
            r"doesn.t support (the )?(model that you provided|tool use|system messages|toolConfig|toolChoice|"
            r"additionalModelRequestFields|inferenceConfig)",
            r"maximum tokens you requested exceeds the model limit",
            r"extraneous key \[\w+\] is not permitted",
            r"required key \[\w+\] not found",
        )
    ),
    re.IGNORECASE,
)
"""Parts of ValidationException's messages that depend on model, account or form of the request, never on one item."""


def refusal(what: str, model: str, code: str, message: str) -> ModelRefused | None:
    """The error for a permanent refusal; None if the call may succeed another time or for another text.

    Args:
        what: Model and region, for the message.
        model: The id that was called.
        code: The service's error code.
        message: Its text.
    """
    if code not in _CAUSES or (code == "ValidationException" and not _PERMANENT_TEXTS.search(message)):
        return None
    text = f"{what} cannot be used ({code}: {message}); {_CAUSES[code]}"
    return ModelRefused(text, model=model, cause=f"{code}: {message}")
