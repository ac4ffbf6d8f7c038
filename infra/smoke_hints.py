"""Why a hop of the smoke test may be stuck, by the state last seen, and the sections of the runbook that help."""

_RUNBOOK = "docs/runbook.md"


def _see(*sections: str) -> str:
    return f"See {_RUNBOOK}: {', '.join(sections)}."


def explain_no_profile(seen: str) -> str:
    if seen == "no profile yet":
        return "The item has not come to enrichment: stream, Pipe, bus, rule, queue or function is stuck. " + _see(
            "A Pipe has stopped", "A Pipe fails", "Dead letters", "Enrichment fails"
        )
    return (
        "There is a profile, but the index has not acknowledged it: OpenSearch or the function's way to it is stuck. "
        + _see("The index is red", "Writes are blocked", "Changes wait")
    )


def explain_not_found(seen: str) -> str:
    if seen.startswith("the API found"):
        return (
            "The index has the profile, but discovery does not find it: does the alias `capabilities` name the index "
            "that enrichment writes to? " + _see("Reindex", "Reconcile")
        )
    return "The API does not answer. " + _see("Discovery fails", "The index is red")


def explain_refused(status: int, said: str) -> str:
    if status == 401:
        return f"the API rejects the token ({said}); is it for this issuer and audience?"
    if status == 403:
        return (
            f"the API rejects the caller ({said}); it needs the policy for agents, and with auth=jwt a token (--token)"
        )
    return f"the API rejects the query ({said}); is the URL that of the stage?"


def explain_not_enriched(_: str) -> str:
    return (
        "The item is found as its owner wrote it, but the models have not described it: are both turned on for this "
        "account and region, and within their quotas? " + _see("Changes wait", "Dead letters")
    )


def explain_not_deleted(_: str) -> str:
    return "The removal has not come to enrichment. " + _see("A Pipe has stopped", "Dead letters", "Changes wait")


def explain_still_found(_: str) -> str:
    return "What was removed is still found: the index has not taken the tombstone. " + _see("Reconcile")
