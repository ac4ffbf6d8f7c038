"""Everyday words, and the words of software for the same: a closed list, for words that a registry lacks."""

from collections.abc import Mapping, Sequence

from mats.domain.text.words import stem

_ROWS = """
room chatroom lounge: channel conversation
chat: conversation message channel
post posting text texting: message
picture photograph portrait: image photo avatar
photo: image avatar
label sticker: tag
person people somebody someone everybody everyone employee colleague coworker staff worker teammate: user member
friend: user member
customer client buyer patron: contact customer account
supplier seller: vendor contact
firm business employer enterprise: company organization account
bill: invoice
offer estimate: quote
remark annotation: comment note
mail letter: email
directory: folder
document paper: file document
bin wastebasket rubbish: trash
job todo chore errand: task
machine computer box: server instance host
website homepage: site domain page
processor: cpu
boss chief: owner manager admin
administrator moderator: admin role
nickname: nick name alias
smiley emoticon: emoji reaction
holiday vacation leave: absence
telephone: phone call
phone: call
meeting appointment gathering party: event
money cash: balance payment amount
product goods article merchandise: item product
newsletter: subscription
link hyperlink: url
finished done: complete
logo emblem: brand image
right access permission: permission role collaboration
signature: sign
copy: duplicate snapshot backup
bot robot: application
ban: block
warn tell notify: alert notification
callback called: webhook
history past happened: event log audit
inactive idle: prune
spent expense: expense receipt
recurring repeat: recurring repeating
plan: schedule
fault bug defect: issue incident
deadline: due
login: session authentication
password passcode: credential
"""
"""Words before the colon may mean those behind it; of several, the first is the most general."""


def _read(rows: str) -> Mapping[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {}
    for words, _, meant in (row.partition(": ") for row in rows.strip().splitlines()):
        for word in words.split():
            found[stem(word)] = [each for each in meant.split() if stem(each) != stem(word)]
    return found


MEANT: Mapping[str, Sequence[str]] = _read(_ROWS)
"""By the stem of an everyday word, what else it may be called."""
