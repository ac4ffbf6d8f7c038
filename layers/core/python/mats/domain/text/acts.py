"""The class of a verb (read one or several, make, edit, remove), of a name and of a request, by closed lists."""

import re
from collections.abc import Sequence
from enum import Flag
from itertools import takewhile

from mats.domain.text.words import is_plural, word_set

_LONGEST_REQUEST = 20  # Words; a longer request asks for several things


class Act(Flag):
    """What a capability does, or what a request wants done; `NONE` is not known."""

    NONE = 0
    ONE = 1
    SEVERAL = 2
    READ = ONE | SEVERAL
    MAKE = 4
    EDIT = 8
    REMOVE = 16
    WRITE = MAKE | EDIT
    CHANGE = WRITE | REMOVE


_NAMED = {
    Act.READ: "get list read fetch find search show retrieve lookup view download describe count check browse scan "
    "export preview identify resolve",
    Act.MAKE: "create new insert register make generate open build",
    Act.EDIT: "update edit rename modify change",
    Act.WRITE: "add upload post schedule set patch replace move assign enable disable activate deactivate approve deny "
    "send publish archive unarchive restore merge convert attach invite join apply commit promote resend transfer "
    "reply copy restart upgrade install rotate refresh pause resume suspend lock unlock put save duplicate",
    Act.REMOVE: "delete remove destroy detach unassign drop ban kick uninstall unpin unlink unban",
    Act.CHANGE: "cancel revoke end leave clear purge reset close expire reject complete write",
    Act.NONE: "query run execute start",
}
VERBS = {verb: act for act, verbs in _NAMED.items() for verb in verbs.split()}
"""The verbs of names and titles; what some do is not said."""
_ASKED = VERBS | {
    verb: act
    for act, verbs in {
        Act.READ: "see look display tell print",
        Act.WRITE: "plan rent order host correct fix mark remind announce notify",
        Act.REMOVE: "erase wipe",
        Act.CHANGE: "take stop throw forget unsubscribe undo block let",
        Act.NONE: "open check post end leave identify resolve new build apply",
    }.items()
    for verb in verbs.split()
}  # fmt: skip
"""The verbs with which requests begin; some of names say little there."""
_POLITE = re.compile(
    r"(?:please|(?:can|could|would) you|(?:i|we) (?:want|need|would like|have) to|i'd like to|help me(?: to)?"
    r"|how (?:can|do|to|could|should)(?: i| we)?) "
)
_QUESTION = re.compile(
    r"(?:who|whom|whose|which|what|where|when|how (?:many|much|often|long|busy|old|big|far)"
    r"|(?:is|are|was|were|does|did|has) (?!not\b))\b"
)
_SHOW = word_set("show get see view display fetch retrieve find")
_AUXILIARIES = word_set("are were do did does have has can may")
_OF_NO_NUMBER = word_set(
    "this is was has does details settings stats statistics preferences contents metrics info information list "
    "overview summary history log report"
)
"""Words that end as plurals do, or that are said of one thing and of several."""
_ENDS_NAME = word_set(
    "of in on for with by from to at that which who between about as where and or via using into inside under"
)
_GET_RID = re.compile(r"get rid of\b|call off\b|(?:turn|switch) .*\bo(?:n|ff)\b|kick .*\bout\b")
_BACK = re.compile(r"get (?:.* )?back\b|tell me when\b|(?:let|make) .*\bknow\b")


def verb_in(words: Sequence[str]) -> str:
    """The verb of a name in words: its first one; HTTP's `post`, `put` and `patch` only if there is no other."""
    known = [word for word in words if word in VERBS]
    return next((word for word in known if word not in ("post", "put", "patch")), "")


def act_named(words: Sequence[str]) -> Act:
    """The act of a name or a title in lower-case words."""
    base = [word if word in VERBS else _base(word) for word in words]
    return VERBS.get(verb_in(base), Act.NONE)


def _base(word: str) -> str:
    """A verb without its ending: `creates` is `create`."""
    return next((word[:-cut] for cut in (1, 2) if word.endswith("s") and word[:-cut] in VERBS), word)


def act_asked(request: str) -> Act:
    """What a request wants done: a question and a few verbs ask, others order; nothing is known of most."""
    text = _POLITE.sub("", request.strip().lower(), count=1)
    words = re.findall(r"[a-z'-]+", text)
    if not words or len(words) > _LONGEST_REQUEST or _BACK.match(text):
        return Act.NONE
    if _GET_RID.match(text):
        return Act.CHANGE
    asked = Act.READ if _QUESTION.match(text) else _ASKED.get(words[0], Act.NONE)
    return _number_asked(words[0], words[1:]) if asked is Act.READ else asked


def _number_asked(verb: str, words: list[str]) -> Act:
    """The number of entries that a reading request wants, by a plural or an article; `READ` if it has neither."""
    if verb == "list" or (verb == "who" and words[:1] in (["are"], ["were"])):
        return Act.SEVERAL
    if verb in ("which", "what"):
        named = words[: 2 if _AUXILIARIES.issuperset(words[2:3]) else 1]
        return Act.SEVERAL if any(map(_says_several, named)) else Act.READ
    if verb not in _SHOW:
        return Act.READ
    named = list(takewhile(lambda word: word not in _ENDS_NAME, words[words[:1] == ["me"] :]))
    if any(map(_says_several, named[-1:])):
        return Act.SEVERAL
    says_one = named[:1] in (["a"], ["an"], ["one"], ["this"], ["that"]) and _OF_NO_NUMBER.isdisjoint(named[1:])
    return Act.ONE if says_one and len(named) > 1 and verb != "find" else Act.READ


def _says_several(word: str) -> bool:
    return is_plural(word) and "'" not in word and word not in _OF_NO_NUMBER
