"""An answer that an LLM judged: one result that stands out, one that wants a second look."""

ASKED = "give a customer the money back"
FIRST = {
    "id": "com.acme.pay/createRefund", "kind": "tool", "name": "createRefund", "namespace": "com.acme.pay",
    "version": "2.1", "score": 0.9123,
    "signals": {"llm": 0.95, "bm25": 0.4, "quality": 0.9, "intent": 1.0},
    "weights": {"llm": 0.5, "bm25": 0.05, "quality": 0.3, "intent": 0.15},
    "relevance": 0.95, "summary": "Gives money back to a customer's card; customers like it.",
    "endpoint": "https://acme.example", "provider": "Acme", "lifecycle": "active", "enriched": True,
    "suspicious": [],
    "why": {"matched": ["customer", "money"], "fields": ["description", "positive_examples"],
            "spelled": ["customers", "money"]},
}  # fmt: skip
SECOND = {
    **FIRST, "id": "com.acme.old/pay_back", "name": "pay_back", "namespace": "com.acme.old", "version": "",
    "score": 0.5, "signals": {"llm": 0.4, "bm25": 0.1}, "weights": {"llm": 0.9091, "bm25": 0.0909},
    "relevance": 0.4, "summary": "", "provider": "", "lifecycle": "deprecated", "enriched": False,
    "suspicious": ["contains bidirectional control characters"], "why": None,
}  # fmt: skip
ANSWER = {
    "query_id": "0123456789abcdef0123456789abcdef", "verdict": "match", "intent": "payments", "degraded": [],
    "results": [FIRST, SECOND],
    "took_ms": {"queue": 1.0, "encode": 7.5, "lexical": 2.0, "neural": 3.0, "fetch": 4.0, "measure": 5.0,
                "rerank": 812.5, "total": 840.2},
    "cost": {"input_tokens": 2345, "output_tokens": 67, "usd": 0.001234},
    "versions": {"index": "opensearch-1", "prompt": "abc", "models": {"embed": "titan-v2", "rerank": "nova-lite"}},
}  # fmt: skip
