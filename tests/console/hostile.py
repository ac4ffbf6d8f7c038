"""Registrations that attack whoever looks at them: in every field, text that is a script where it is taken for one.

Every payload would set `window.__xss`, which the browser of this suite notices.
"""

import unicodedata
from typing import Any
from urllib.parse import quote

from mats.domain.capability.registration import Registration
from mats.domain.profile.profile import Enrichment
from mats.domain.text.fence import remove_hidden
from mats.ports import Written
from tests.builders import an_item

PAYLOADS = {
    "script": "<script>window.__xss=1</script>",
    "upper": "<ScRiPt\n>window.__xss=1</sCrIpT >",
    "image": "<img src=x onerror=window.__xss=1>",
    "quoted-image": "\"'><img src=\"x\" onerror=\"window.__xss=1\">",
    "svg": "<svg/onload=window.__xss=1><animate onbegin=window.__xss=1 attributeName=x>",
    "frame": '<iframe srcdoc="<script>parent.__xss=1</script>" src="javascript:parent.__xss=1"></iframe>',
    "attribute": '" autofocus onfocus="window.__xss=1" onmouseover="window.__xss=1" x="',
    "apostrophe": "' autofocus onfocus='window.__xss=1' style='animation:x' onanimationstart='window.__xss=1",
    "closing": "</textarea></title></style></script></template></option></select><script>window.__xss=1</script>",
    "comment": "--><script>window.__xss=1</script><!--",
    "json": '"}]}</script><script>window.__xss=1</script>\\u003cscript\\u003ewindow.__xss=1\\u003c/script\\u003e',
    "escaped": "&lt;script&gt;window.__xss=1&lt;/script&gt;&#60;img src=x onerror=window.__xss=1&#62;",
    "url-escaped": "%3Cscript%3Ewindow.__xss=1%3C/script%3E%22%3E%3Cimg%20src=x%20onerror=window.__xss=1%3E",
    "javascript": "javascript:window.__xss=1",
    "javascript-hidden": "jAvA\tscript&colon;window.__xss=1 //\n javascript:/*--></a>*/window.__xss=1",
    "data": "data:text/html,<script>opener.__xss=1</script>",
    "template": "{{constructor.constructor('window.__xss=1')()}} ${window.__xss=1} <%= window.__xss=1 %>",
    "mutation": '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=__xss=1&gt;">',
    "style": "<style>@import 'https://elsewhere.invalid/x.css';*{background:url(https://elsewhere.invalid/x)}</style>",
    "base": '<base href="https://elsewhere.invalid/"><link rel=stylesheet href=//elsewhere.invalid/x.css>',
    "refresh": '<meta http-equiv=refresh content="0;url=https://elsewhere.invalid/"><form action=//elsewhere.invalid>',
    "prototype": "__proto__ constructor toString hasOwnProperty",
    "reversed": "\u202e<script>window.__xss=1</script>\u202c \u2067tfel ot thgir\u2069",
    "invisible": "re\u200bfu\u2060nd \u3164\u00ad<img src=x onerror=window.__xss=1>\ufeff\U000e0041",
    "stacked": "Z" + "\u0301\u0489\u0324" * 60 + "algo <b onclick=window.__xss=1>",
    "long": "W" * 2_000,
    "wide": "﷽" * 120 + "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 20,
}  # fmt: skip

ENDPOINTS = [
    "javascript:window.__xss=1",
    " JaVaScRiPt:window.__xss=1//https://ok.example",
    "java\nscript:window.__xss=1",
    "data:text/html,<script>opener.__xss=1</script>",
    "vbscript:window.__xss=1",
    "//elsewhere.invalid/x",
    "https://elsewhere.invalid/\"onmouseover=\"window.__xss=1",
    "https://user:password@elsewhere.invalid\\@127.0.0.1/<script>window.__xss=1</script>",
]  # fmt: skip

NAMES = [
    "a/b/c/.../d",
    "a%2Fb%2fc%252F%00",
    ".../registry",
    "?q=1#/edit?id=2",
    "a&open=b&kind=tool=x",
    "/" * 190,
    "x" * 200,
    "__proto__",
    "<img src=x onerror=window.__xss=1>/%3Cscript%3E",
    ". ..",
    "\U0001f4a9/gnp.exe",
]
"""Names whose ids must survive addresses."""


def hostile_items() -> list[dict[str, Any]]:
    """Valid items of all kinds: each payload in every field at once, each endpoint, each name; one kept private."""
    kinds = ("tool", "agent", "model", "skill")
    everywhere = [_everywhere(kinds[n % 4], label, text) for n, (label, text) in enumerate(PAYLOADS.items())]
    private = {
        **_everywhere("tool", "private", PAYLOADS["image"]),
        "visible_to": [text[:200] for text in map(_line, PAYLOADS.values())],
    }
    endpoints = [
        an_item(namespace="org.evil.endpoint", name=f"endpoint-{n}", endpoint=endpoint, provider=PAYLOADS["script"])
        for n, endpoint in enumerate(ENDPOINTS)
    ]
    names = [an_item(namespace="org.evil.name", name=name) for name in NAMES]
    long = an_item(namespace=".".join(["a" * 39] * 5), name="<b>" + "y" * 190, description="hostile " * 12_000)
    return [*everywhere, private, *endpoints, *names, long]


_IN_ADDRESSES = (
    "image attribute apostrophe closing json url-escaped javascript template prototype reversed long".split()
)
"""One payload for each way out of an address."""


def hostile_routes() -> list[str]:
    """Addresses that carry payloads, as somebody could send them."""
    texts = [quote(PAYLOADS[label], safe="") for label in _IN_ADDRESSES]
    shapes = ("#/search?q={0}&kind={0}&ns={0}", "#/search?q=refund&open={0}", "#/registry?show={0}&q={0}")
    more = ("#/edit?id={0}", "#/{0}")
    return [shape.format(text[:6_000]) for shape in (*shapes, *more) for text in texts]


def hostile_writing(registration: Registration) -> Written:
    """An enrichment that went along with what the registration said."""
    text = registration.description[:300] or "<img src=x onerror=window.__xss=1>"
    enrichment = Enrichment(
        summary=f"{text} summary",
        action=f"{text} action",
        keywords=(f"{text} keyword", "refund"),
        positive_examples=(f"{text} example",),
        negative_examples=(f"{text} for a neighbour",),
    )
    return Written(enrichment=enrichment)


def rejected_item(id: str) -> dict[str, Any]:
    """An item that nothing accepts, whose fault quotes it."""
    namespace, _, name = id.partition("/")
    text = PAYLOADS["image"]
    return {"namespace": namespace, "name": name, "kind": text, text: text, "tags": [text, {"<b>": 1}], "trust": text}


def _everywhere(kind: str, label: str, text: str) -> dict[str, Any]:
    line, key = _line(text), remove_hidden(text)
    short = line[:200].strip()
    return {
        "namespace": f"org.evil.{label}",
        "name": short,
        "kind": kind,
        "description": text,
        "version": short[:100].strip(),
        "tags": [short, f"tag {short}"[:200].strip()],
        "type_tags": [short],
        "endpoint": f"https://ok.example/{line}"[:2_000].strip(),
        "input_schema": {
            "type": "object",
            "title": text,
            "properties": {key: {"type": line, "description": text, "enum": [text]}, "refund": {"description": text}},
            "required": [key],
        },
        "examples": [f"refund a card payment {text}"[:2_000].strip()],
        "negative_examples": [text.strip()],
        "provider": short,
        "descriptor": {
            "title": text,
            text: {text: [text, {text: None}]},
            "url": "javascript:window.__xss=1",
            "icons": [
                {"src": "https://elsewhere.invalid/icon.svg"},
                {"src": "data:image/svg+xml,<svg onload=alert(1)>"},
            ],
            "skills": [{"name": text, "description": text, "examples": [text]}],
        },
    }


def _line(text: str) -> str:
    """The text as a name may hold it."""
    return remove_hidden("".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text))
