"""Finds text that steers the model that reads it, by the structure of its clauses rather than by sentences: 0087.

Each word becomes the letter of its class (`_WORDS`, with the words of a dozen languages; paths, addresses, identifiers
by their shape), so that a text becomes a short string of classes, and a rule is an expression over that string: a verb
of taking, a private file, a verb of sending. What a security tool quotes as an example of an attack is left out.
"""

import base64
import binascii
import codecs
import html
import re
import urllib.parse
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mats.domain.text.lookalikes import skeleton
from mats.domain.text.words import spelled_words, split_identifier

ORDERS = "contains instructions to a model"
EXFILTRATION = "asks for private data to be passed on"
DIRECTION = "directs the use of other tools"
DEED = "does what its name does not say"


class Found(NamedTuple):
    """A reason, and the part of the text that it is about."""

    reason: str
    start: int
    end: int


_WORDS = {
    # negation; people; models; verbs of telling; secrecy
    "N": "not never no don't dont doesn't without nor neither cannot can't avoid refrain rather nicht kein "
    "keine nie niemals ohne sin nunca jamás sans ne pas jamais senza non mai sem não niet nooit "
    "zonder bez не никогда без değil asla tanpa jangan không đừng 不要 不得 切勿 请勿 無しに ないで "
    "せずに ずに 없이 말고 마세요 دون لا नहीं बिना",
    "U": "user user's users users' human person people anyone anybody them customer operator nutzer "
    "nutzers nutzern benutzer benutzers anwender usuario usuarios utilisateur utilisateurs utente "
    "utenti usuário usuários gebruiker użytkownika użytkownikowi пользователя пользователю "
    "пользователь користувача користувачу kullanıcıya kullanıcı pengguna 用户 用戶 ユーザー ユーザ "
    "사용자 사용자에게 المستخدم उपयोगकर्ता",
    "M": "assistant assistants model models agent agents ai llm llms claude gpt chatgpt gemini copilot "
    "chatbot bot assistent asistente assistente ассистент 助手 アシスタント 어시스턴트 المساعد सहायक "
    "asisten",
    "T": "showing tell say telling mention mentioning mentions inform informing reveal revealing disclose "
    "disclosing notify notifying alert announce admit sage sagen sag erwähne erwähnen informieren "
    "mitteilen verrate digas diga decir menciones mencionar informar avisar dire dis mentionner "
    "mentionne prévenir informer menzionare avvisare informare dica mencione dizer vertel vermeld "
    "melden mów wspominaj informuj powiadamiaj говори сообщай сообщать упоминай говорити повідомляй "
    "söyleme bahsetme beritahu memberitahu 告诉 告訴 提及 透露 告知 知らせ 伝え 言わ 알리지 말하지 "
    "تخبر إخبار बताएं बताए",
    "Q": "silently quietly secretly covertly invisibly discreetly stealthily unnoticed heimlich unbemerkt "
    "silenciosamente secretamente discrètement secrètement segretamente discretamente тайно незаметно "
    "悄悄 秘密地 こっそり 密かに 몰래 سرا चुपचाप stiekem potajemnie diam-diam gizlice",
    # setting aside, and what is set aside
    "I": "ignore disregard forget override bypass overrule circumvent discard abandon neglect obviate "
    "supersede ignoriere ignorieren ignoriert vergiss vergesst missachte ignora ignorar ignorez "
    "ignorer ignorare ignorera olvida oublie oubliez esqueça dimentica abaikan negeer zignoruj "
    "ignoruj игнорируй игнорируйте игнорировать забудь забыть ігноруй забудьте 忽略 忽視 忽视 无视 "
    "無視 무시 무시하세요 تجاهل अनदेखा नज़रअंदाज़ התעלם נادیده نادیده دستورها",
    "R": "filters directive instructions instruction prompt prompts rules guidelines guidance directives "
    "directions constraints policy policies restrictions safeguards guardrails orders command "
    "commands objective objectives anweisungen anweisung vorgaben vorgabe instruktionen instruktioner "
    "instrucciones instrucción instruções istruzioni consignes instructies opdrachten instrukcje "
    "instrukcji polecenia инструкции инструкций указания указаний інструкції instruksi perintah "
    "talimatları talimat 指令 指示 说明 說明 提示 规则 規則 命令 ルール 지시를 지시 지침을 지침 "
    "명령을 명령 التعليمات الأوامر निर्देशों निर्देश הוראות ההוראות دستور",
    "P": "système sistema системы systems previous prior above earlier preceding former initial original "
    "existing given your system developer developer's developers safety security core anterior "
    "anteriores anteriormente précédentes précédents antérieures precedenti precedente bisherigen "
    "bisherige vorherigen vorherige früheren eerdere vorige tidigare poprzednie wszystkie предыдущие "
    "предыдущих прежние все попередні sebelumnya önceki 之前 以前 上述 先前 이전 이전의 السابقة पिछले",
    # taking, sending, running
    "G": "receive paste read open load fetch retrieve cat collect gather extract dump harvest obtain "
    "locate grab get access look-up find list return print repeat output steal lies lese liest öffne "
    "lea lee lis lisez leggi leia lees przeczytaj прочитай прочти прочитать oku baca đọc 读取 讀取 "
    "打开 読み取 読み込 読ん 읽고 읽어 اقرأ पढ़ें पढ़ो",
    "g": "reads opens loads fetches collects gathers extracts harvests steals copies exfiltrates sniffs "
    "scrapes captures obtains gelesen",
    "S": "encode send forward post upload transmit exfiltrate pass append attach embed insert include put "
    "provide supply hand submit push mail email bcc cc share relay deliver transfer place add copy "
    "report publish store fill render sende senden schicke schicken geschickt übergib envía envíe "
    "enviar incluirlo envoie envoyer envoyez invia inserisci inseriscilo inviare envie inclua "
    "verstuur stuur wyślij отправь отправить отправляй передай gönder kirim gửi 发送 發送 传递 "
    "作为参数 上传 送信 渡し 전송 보내 أرسل भेजें भेजो",
    "s": "relayed harvests harvest leak leaks uploaded sent forwarded posted transmitted submitted adds "
    "sends forwards posts uploads transmits exfiltrates copies mails emails publishes relays "
    "transferred passes includes embeds appends",
    "E": "execute run eval install delete remove buy purchase approve overwrite chmod download wire überweise",
    "e": "forwarding posting downloads starts executes runs executing running evaluates installs deletes "
    "buys approves uploading reading exfiltrating sending writes",
    "y": "go-through routed rerouted redirected intercepted replaced swapped piped",
    "V": "redefine replace change modify alter swap reroute redirect intercept set rewrite substitute "
    "route spoof tamper hijack multiply",
    "u": "replaces supersedes substitutes",
    "v": "changes modifies alters swaps reroutes redirects intercepts rewrites affects hijacks behaves",
    # what is taken, and where it goes
    "K": "credential credentials password passwords passphrase secret secrets cookies cookie keychain "
    "clipboard mnemonic wallet wallets apikey passwort passwörter contraseña contraseñas "
    "mots-de-passe senhas senha пароль пароли 密码 密碼 パスワード 비밀번호 env printenv "
    "environment-variables private-keys",
    "C": "conversation conversations unterhaltung conversación conversazione conversa 会话 对话 会話 대화 المحادثة",
    "L": "webhook hook collector remote-server external-server external-endpoint vendor attacker "
    "third-party maintainer",
    "A": "parameter parameters argument arguments field fields variable value values header payload "
    "parámetro paramètre parametro parâmetro 参数 參數 引数 매개변수 пар аметр параметр",
    # other tools, and this one
    "O": "toutes tous tutte tutti todas todos alle allen semua wszystkich все всех 所有 すべて 全て 모든 "
    "جميع सभी other any every all each another others rest alternative alternatives competing "
    "remaining everything",
    "Z": "tool tools server servers function functions capability capabilities candidate candidates option "
    "options outil outils herramienta herramientas ferramenta strumento werkzeug werkzeuge 工具 "
    "ツール 도구 도구를 инструмент инструмента",
    "D": "it this me mine itself ours dieses diese dieser esta este cet ce questo questa этот 这个 這個 この 이",
    # when, must, agreement
    "B": "before whenever when prior first always once after upon while during until vor bevor nach jedes "
    "jeder antes después siempre sempre toujours immer stets avant après chaque prima dopo перед "
    "всегда 调用前 之前先 总是 總是 始终 始終 永远 永遠 务必 務必 常に 必ず 항상 हमेशा دائما",
    "W": "could must should shall need needs have has required requires requirement mandatory please "
    "kindly make ensure expected dear ought obliged remember soll sollst muss müssen bitte debe debes "
    "deve devi doit devez должен должны 请 必须 必須 ください",
    "H": "confirmation confirmations consent approval permission permissions asking ask refusal refusals "
    "checks objection comment notice exceptions exception",
    "F": "",  # private files, by shape
    "X": "",  # identifiers, by shape
    "Y": "you you'll you're",
    "J": "innocent benign backdoors harmless malicious data-exfiltration exfiltration arbitrary backdoor "
    "payload unrestricted",
    "j": "scams scam fraudulent malware harmful untrusted compromised unreliable incomplete unsafe "
    "insecure dangerous broken wrong inaccurate outdated",
    "c": "follow treat regard consider carry heed befolge obedece obéis obbedisci подчиняйся выполняй "
    "выполнять 遵循 遵守 従って",
    "a": "once-approved after-approval post-approval",
    "z": "use call invoke using calling called invoked used invoking nutze 使用 invocado",
    "q": "select choose pick prefer recommend rank elige escoge selecciona escolha selecione scegli "
    "seleziona choisissez choisis choisir wähle wählen wählt выбирай выбери выбирать 选择 選擇 推荐 "
    "推薦 選択 選ん 선택 선택하세요 추천 चुनें اختر",
    "_": "the a an of its their his her that which do does be been is are der die das el la los les le i 的 を",
    "m": "shadows overrides outranks overrules",
    "l": "comply obey obeyed",
    "i": "instruct instructs instructing force forces forcing trick tricks convince convinces tells cause causes",
    "d": "approved pre-approved agreed consented granted authorised authorized permitted",
    "&": "and or then but und oder y o et ou e и",
    ",": "also additionally instead first-of-all furthermore moreover now just simply only even",
    "t": "to zu",
    "h": "hide conceal withhold verberge ocultar cacher nascondi",
    "k": "output outputs response responses content contents inhalt contenu contenido conteúdo contenuto 内容",
    "w": "entire full complete whole verbatim hidden everything vollständige complète 完整 全文",
    "f": "deny lie pretend falsely",
    "=": "as",
    "x": "contacts message messages photos documents inbox emails history",
    "p": "system-prompt hidden-instructions tool-definitions",
    "n": "suspended lifted outdated void obsolete disabled released freed exempt liberated no-longer "
    "henceforth from-now-on",
    "o": "over above ahead-of instead-of",
    "b": "bcc bcc'd blind-copy",
}

_PHRASES = {
    "p": r"system(?:'s)? prompts?|(?:system|developer|hidden) messages?|hidden developer message|(?:hidden|"
    r"initial|secret)(?: system)? (?:instructions|prompt)|system instructions|"
    r"tool definitions",
    "C": r"(?:chat|message|conversation|session)(?: and \w+)? history|(?:complete|full|entire) prompt|chat log",
    "K": r"(?:api|private|ssh|secret|access|signing|encryption)[ _]keys?|seed phrase|recovery phrase|env vars?|"
    r"environment variables?|connection strings?|(?:browser|browsing|shell) history|(?:access|session|api|auth|"
    r"oauth) tokens?|"
    r"clave privada|clé privée",
    "L": r"(?:remote|external|foreign|outside) (?:server|endpoint|site|address|service|party|host)|"
    r"third part(?:y|ies)",
    "I": r"set aside|pay no attention to|außer acht(?: lassen)?|yok say|görmezden gel|bỏ qua|stop following",
    "x": r"(?:home|working) (?:director(?:y|ies)|folder)|phone numbers?|home address|calendar",
    "T": r"bring (?:\w+ )?up|point (?:\w+ )?out",
    "Q": r"to yourself|behind the scenes|in secret|without (?:their|his|her|the user's) knowledge|sans prévenir|"
    r"senza dire nulla|sin avisar|sem avisar",
    "n": r"from (?:now|here|this point|this moment) on(?:wards?)?|no longer|ab sofort|desde ahora",
    "o": r"instead of|rather than|in place of|ahead of|in favou?r of",
    "B": r"prior to|(?:each|every) time|as soon as|(?:after|on) (?:each|every)|antes de|avant chaque|prima di",
    "a": r"(?:once|after|when|until|following)(?: \w{1,20}){0,6}? (?:approved|approval|reviewed|accepted|"
    r"trusted|allow-?listed|whitelisted|"
    r"permissions?|review|calls|uses|days)|(?:later|next|future|production|real) (?:version|release|text)|"
    r"(?:real|actual|true) (?:behaviou?r|purpose|function)|once in use|in the audit|for (?:the )?review(?:ers)?|"
    r"(?:post|during)[- ]"
    r"(?:approval|review)",
    "y": r"(?:go|pass|run|come) through|be routed|be piped",
    "G": r"look(?:s|ing)? (?:it |them )?up",
    "r": r"regardless of|no matter|whatever|irrespective of",
}
"""Classes of several words together."""
_CLASS = {word: letter for letter, words in _WORDS.items() for word in words.split()}
_SPACED = re.compile(r"[\u0900-\u097f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_UNSPACED = "|".join(sorted((word for word in _CLASS if _SPACED.search(word)), key=len, reverse=True))
_PRIVATE = (
    r"~/(?:\.\w|documents\b|desktop\b|library\b|wallet)(?:[\w./*-]*\w)?|"
    r"(?:/root/|/home/\w+/|%\w+%\\|\$home/)?(?:\.(?:ssh|aws|kube|gnupg|netrc|npmrc|pypirc|git-credentials)\b|"
    r"\.\w+_history\b|\bid_(?:rsa|ed25519|dsa|ecdsa)\b|\bauthorized_keys\b|/etc/(?:passwd|shadow|sudoers)\b|"
    r"/proc/self/environ|"
    r"\bwallet\.dat\b|\bmcp(?:_config)?\.json\b|\b\w{0,20}desktop_config\.json\b)(?:[\w./*-]*\w)?|"
    r"(?<![\w/])\.env\b(?!\.(?:example|sample))"
)
_ADDRESS = (
    r"(?:https?|wss?|ftp)://\S+|[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}|\+\d[\d ]{7,}\d|"
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\b0x[0-9a-f]{20,}|"
    r"\b[\w-]{1,63}\.example\b|\b[a-z]{2}\d\d(?: ?\d{4}){3,}\b"
)
_TOKEN = re.compile(
    "|".join((
        r"(?P<space> +)", rf"(?P<F>{_PRIVATE})", rf"(?P<L0>{_ADDRESS})",
        r"\b(?=[^\W\d_])(?:" + "|".join(f"(?P<{letter}>{each})" for letter, each in _PHRASES.items()) + r")(?!\w)",
        r"(?P<K0>\b[a-z][a-z0-9]*_(?:[a-z0-9]+_){0,6}(?:key|token|secret|password|credentials)\b)",
        r"(?P<X>`[\w./-]{3,}`|\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b)",
        r"(?P<stop>[.!?](?=[\s\"')\]>*}]|$)|[。！？।\n])",
        r"(?P<pause>[,:;()\[\]<>\"“”{}*>|、，：；-]|(?<!\w)'|'(?!\w))", rf"(?P<cjk>{_UNSPACED})",
        r"(?P<word>(?:[^\W\d_\u3040-\u30ff\u3400-\u9fff]+['’-]?)+)",
    ))
)  # fmt: skip

_RULES: dict[str, tuple[str, ...]] = {
    ORDERS: (
        "PR~3n",
        "T~1M~1t",
        "#f~2D",
        "#E[^|N]{0,12},N~1H",
        "NWtT",
        "#I~2r~2R",
        "R~8o~1U",
        "PR~1N",
        "N~1[RH]~1H",
        "a~14N~1H",
        "#i~1M~1t",
        "l~6[RPUM]",
        "[W,&]l",
        "m~2U",
        "m~3P~3R",
        "#f~4P",
        "=~2J~1M",
        "#I~2[wO]~3Y",
        "(?<=[|,&WYB])T~2p",
        "[SVEG]~12N~1T~2[|UD]",
        "(?<=\\|)[^B|]{0,4}U~2d",
        "=M~1Y",
        "T[^|]{0,10}O~1j",
        "#I~3[Pp]~3R",
        "q~1DZ?~3o~1O",
        "[BW]~2q~1D(?!~2o)",
        "q~1B~1D",
        "B~3DZ?~1q",
        "N~3[qz]~1OZ",
        "q~1D~3I",
        "#I~2[Ow]~2[PRo]",
        "#c~2P~3R",
        "P~2R~4I",
        "I~2R~4[Po]",
        "#I~2U",
        "#I~2PP",
        "#I~3O~2Z",
        "R~8I~2U",
        "n~5[HR]",
        "nY",
        "u~3P~3R",
        "N~6T~6U",
        "U~4N~3T",
        "NT~2[DR]",
        "N~3T~6p",
        "T~3U~3N",
        "U~3T~6N",
        "h~8U",
        "#fU?~1&~1T",
        "(?<=\\|)[^N|]*[cEGSz][^N|,]{0,8}N~2H",
        "c~8N~3[PH]",
        "PH~2N",
        "N~2H~1H",
        "M~1W~3N~3T",
        "U~1N~1HU",
        "[zGSE]~20rU",
        "rU~4[GSE]",
        "rU~8n",
        "c~2R~6r",
        "c~8=~3[RP]",
        "[WM]~5E~3F",
    ),
    EXFILTRATION: (
        "B~6#S~8L",
        "U~3K~8#S~1D",
        "W~4s~2L",
        "[eSs]~3[KCx]~5L",
        "e~1&~1e~5L",
        "#S~2[wO]~3x",
        "#G~1[OU]~2K~6[AL]",
        "#G~6F~12[SA]",
        "S~6F~6[AL]",
        "[BWMYz]~8G~6F",
        "[BWMY]~4zX~4F",
        "[BWM]~8[GS]~3k~2F",
        "k~2F",
        "#S~5[Cp]~8[AL]",
        "#S~3w~3[Cp]",
        "#G~3w~2[Cp]~8[wP]",
        "[TG]~1w~1p",
        "[TGS]~1P~1p",
        "[TGS]~1p~2Y",
        "[WM]~3[SG]~4[Cp]~12[AL]",
        "#G~3K~8[Ss]",
        "#S~2[UO]~3K~10[YLA]",
        "U~1K~4Y~2G",
        "S~3C~3[LD]",
        "#S~1O~4U~6L",
        "W~4[eSs]~3L~8N",
        "Q~2[GSEVgs]",
        "#S~8L~8N~6[TU]",
        "[gs]~6[FKC]~10[sS]~6L",
        "[gs]~4[KC]~6L",
        "bL|L~3b|O~4b",
        "z~3wC",
        "[GM]~3x~5S~4L",
        "E~1K~8S",
        "[KC]~20S~5L",
    ),
    DIRECTION: (
        "[uv]~2k~2X",
        "(?<!D)Z\\.WN~1z",
        "B~1OZ~8#z~1D",
        "O~2Z~1j",
        "[SV]~2J",
        "B~4(?:XZ|ZX)~9#[SV]~6DZ",
        "XZ~2N~2z",
        "Wy~3D",
        "Nz~4[ZX],~5j",
        "m~4X",
        "z~4B~3OZ(?!~3D)",
        "B~2OZ(?!~3D)~6z",
        "W~4B[Zz]~4O~1C",
        "B~3(?:XZ|ZX|X~2[ze])~9#V",
        "v~4(?:XZ|ZX)",
        "X~4j~6V",
        "[OX]~2Z~2j~4[EIzN]",
        "XZ?~1&~1j",
        "uX~3V",
        "X~5Wy",
        "V~3A~4OZ",
        "A~3OZ~8[BON]",
        "(?:XZ|ZX)W~2[SEVG]",
        "(?:XZ|ZX)~2v",
        "BY~3Z~8#z~1D",
        "X~4OZ~3Nz",
        "V~2Z~1X~8A",
        "B~4(?:XZ|ZX)~12W[SV]",
        "#V~3(?:XZ|ZX)",
        "[XZ]~8w~2L",
    ),
    DEED: (
        "J~6a",
        "a[^N]{0,20}[gGsSeE]~4[KFxLC]",
        "(?<=\\|)[^No|]*a[^No]{0,20}[gGsSeE]~4[KFxLC]",
        "a~20i~1M",
        "(?<=\\|)[^No|]*(?:a[^|No]{0,14}(?:[JQ]|[es]~3[KFx])|J~6a)",
        "V~3a~6[gGes]~2[KF]",
    ),
}
"""Expressions over classes: `~n` is a gap of at most n words of a sentence, `#` the place of an imperative."""


def _expression(rule: str) -> str:
    gaps = re.sub(r"~(\d*)", lambda found: f"[^|]{{0,{found[1] or 2}}}", rule)
    return gaps.replace("#", "(?:(?<=[|,&NWYBQMna])|(?<=[WYM]t))")


_STEERS = [(reason, re.compile("|".join(map(_expression, rules)))) for reason, rules in _RULES.items()]


_SALIENT = frozenset(word for word, letter in _CLASS.items() if letter in "IRTQKCpnhufaJvqjbHy") | frozenset(
    "key keys phrase token history log aside attention acht gelen qua following bring know aware scenes "
    "knowledge variables environment tokens assistant behavior behaviour purpose use audit reviewers longer "
    "now here point moment ab desde regardless matter irrespective "
    "approval review approved "
    "reviewed vars system "
    "yourself prévenir dire avisar prompt".split()
)
_TOOLS, _OTHERS = (frozenset(w for w, letter in _CLASS.items() if letter in those) for those in ("Z", "OVXy"))
_PLAIN_WORD = re.compile("[a-z]+")
_SHAPES = re.compile(r"[~:]/|@|\.(?:env|ssh|aws|kube|example)\b|etc/|\b0x|id_(?:rsa|ed)")


def may_steer(lowered: str) -> bool:
    """False for most texts in which no rule can match, in a tenth of the time."""
    if not lowered.isascii():
        return True
    those = set(_PLAIN_WORD.findall(lowered))
    if not those.isdisjoint(_SALIENT) or _SHAPES.search(lowered):
        return True
    return not those.isdisjoint(_TOOLS) and ("_" in lowered or not those.isdisjoint(_OTHERS))


class _Sentences(NamedTuple):
    """The classes of a text's words, one letter each, and where each word is."""

    classes: str
    spans: list[tuple[int, int]]


def _classify(text: str) -> _Sentences:
    classes, spans = ["|"], [(0, 0)]
    for token in _TOKEN.finditer(text.lower()):
        kind = token.lastgroup or ""
        if kind == "space":
            continue
        if kind == "K0":
            letter = "K" if text[token.start() : token.end()].isupper() else "X"
        elif kind == "stop":
            letter = "|"
        elif kind == "pause":
            letter = ","
        elif kind in ("word", "cjk"):
            letter = _CLASS.get(token[0].replace("’", "'").strip("'-"), ".")
        else:
            letter = _CLASS.get(token[0].strip("`"), kind[0]) if kind == "X" else kind[0]
        if letter == "_":
            continue
        classes.append(letter)
        spans.append(token.span())
    return _Sentences("".join(classes), spans)


def steering_in(text: str) -> Iterator[Found]:
    """What steers a model in a visible text that `may_steer`: at most one finding of each reason."""
    classes, spans = _classify(text)
    for reason, rules in _STEERS:
        if found := rules.search(classes):
            first, last = found.start(), max(found.start(), found.end() - 1)
            yield Found(reason, spans[first][0], spans[last][1])


_MENTIONS = re.compile(
    r"\b(?:(?:detect|scan|audit|check|find|block|prevent|flag|explain|document|classifie|refuse|catche|"
    r"recogni[sz]e|look|"
    r"test|generate|remove|analy[sz]e|write)(?:s|ing|or|er|ion)|phrases?|strings?|shows how|"
    r"(?:attack|inject|jailbreak|malware|phish|poison|adversar)\w*)\b(?P<between>[^.!?\n]{0,100}?)"
    r"(?P<quoted>\"[^\"\n]{3,200}\"|“[^”\n]{3,200}”|(?<!\w)'[^'\n]{3,200}'(?!\w))",
    re.IGNORECASE,
)
"""A quotation of what a tool says it looks for."""
_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|(?<!\w)'[^'\n]*'(?!\w)")
_TO_THE_READER = re.compile(r"\b(?:you|must|should|always|before|please|obey)\b", re.IGNORECASE)


def without_mentions(text: str) -> str:
    """The text with quoted examples of attacks blanked, in sentences that ask nothing of their reader."""

    def blank(found: re.Match[str]) -> str:
        after = _QUOTED.sub("", text[found.end() : found.end() + 200])[:80]
        if _TO_THE_READER.search(f"{found['between']} {after}"):
            return found[0]
        start = found.start("quoted") - found.start()
        return found[0][:start] + "x" * len(found["quoted"])

    for _ in range(_QUOTED_IN_A_ROW):
        after = _MENTIONS.sub(blank, text)
        if after == text:
            break
        text = after
    return text


_QUOTED_IN_A_ROW = 4

_BASE64 = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{24,}={0,2}")
_HEX = re.compile(r"\b(?:[0-9a-fA-F]{2}){16,}\b")
_ESCAPED = re.compile(r"(?:%[0-9a-fA-F]{2}){4,}|(?:\\u[0-9a-fA-F]{4}){4,}|(?:\\x[0-9a-fA-F]{2}){4,}|&#x?[0-9a-fA-F]+;")
_SPELLED = re.compile(
    r"(?:(?<!\w)[^\W_](?:[ ._*-]{1,3}(?=[^\W_](?![^\W_])))){5,}[^\W_](?!\w)|(?<!\w)(?:\w[._*-]){3,}\w(?!\w)"
)
_LEET = re.compile(r"[a-z](?=[013457@$])[^a-z]+[a-z]|\b[013457@$][a-z]{2,}")
_TURNED = ("rot13", "rot-13", "caesar", "backward", "reverse", "right to left")
_AS_LETTERS = str.maketrans("013457@$", "oieastas")
_LETTERS_MIXED = re.compile(r"[A-Za-z](?=[\u0370-\u052f\u13a0-\u13ff])|[\u0370-\u052f\u13a0-\u13ff](?=[A-Za-z])")


def decoded_forms(text: str) -> Iterator[tuple[str, int, int]]:
    """What a model may read in encoded, spelled or turned parts of a text, with the part of the text that says it."""
    for found in _BASE64.finditer(text):
        yield from _if_text(found, _from_base64(found[0]))
    for found in _HEX.finditer(text):
        yield from _if_text(found, bytes.fromhex(found[0]).decode("utf-8", "ignore"))
    whole, lowered = (0, len(text)), text.lower()
    if any(mark in text for mark in ("%", "\\u", "\\x", "&#")) and (escaped := _ESCAPED.search(text)):
        plain = html.unescape(urllib.parse.unquote(text))
        yield (
            re.sub(r"\\[ux]([0-9a-fA-F]{4}|[0-9a-fA-F]{2})", lambda code: chr(int(code[1], 16)), plain),
            escaped.start(),
            len(text),
        )
    if spelled := _SPELLED.search(text):
        yield _join_spelled(text), spelled.start(), len(text)
    if len(_LEET.findall(lowered)) > 2:
        yield lowered.translate(_AS_LETTERS), *whole
    if any(word in lowered for word in _TURNED):
        yield codecs.decode(text, "rot13"), *whole
        yield text[::-1], *whole
    if not text.isascii() and _LETTERS_MIXED.search(text):
        yield skeleton(text), *whole


def _if_text(found: re.Match[str], decoded: str) -> Iterator[tuple[str, int, int]]:
    if len(decoded.split()) > 2 and decoded.isprintable():
        yield decoded, *found.span()


def _from_base64(text: str) -> str:
    body = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4)).decode("utf-8", "ignore")
    except (binascii.Error, ValueError):
        return ""


def _join_spelled(text: str) -> str:
    """`i g n o r e   a l l` and `i.g.n.o.r.e a.l.l` with whole words: a wider gap separates words."""
    gap = r"(?<=\w)[._*-](?=\w)" if re.search(r"\w[._*-]\w[._*-]\w", text) else r"(?<=\b\w) (?=\w\b)"
    return re.sub(gap, "", text)


_PRIVATE_BUSINESS = frozenset(
    "account accounts agent agents ai api assistant audit auth authenticate authentication aws backs backup "
    "blockchain chat cli cloud code command commands completion completions config configuration connect "
    "connection conversation conversations credential credentials database decrypt deploy deployment deploys "
    "directory docker dotenv encrypt encryption env environment execute executes file files folder gcloud "
    "generate generates git github gpt history honeypot host hosts install installer installs key keys kubectl "
    "kubernetes linux llm llms login malware memory message messages model models npm password passwords path "
    "prompt prompts python remote repository run runs s3 sandbox scan scanner scans script secret secrets secure "
    "security server servers session setup shell sign signs ssh summarise summarize sync system terminal text "
    "threat token tokens transaction user users variable variables vault wallet".split()
)
"""What a tool may be about that handles private files, keys, conversations or scripts."""
_PRIVATE_PARAMETER = re.compile(
    r"(?:ssh|private|secret_?access|signing)_?key|system_?prompt|(?:conversation|chat|message)_?(?:history|log)|"
    r"seed_?phrase|mnemonic|environment_?variables|(?:browser|session)_?cookies|id_rsa",
    re.IGNORECASE,
)
_PIPED = re.compile(r"(?:curl|wget)\b[^|\n]{0,120}\|\s*(?:sudo )?(?:ba|z)?sh\b|\bany shell commands?\b", re.IGNORECASE)
_HANDLES_PRIVATE = re.compile(r"[gGzsSeEVU][^|]{0,8}F")


def unrelated_deed(name: str, description: str, parameters: Iterable[str]) -> tuple[int, int] | None:
    """Where a description tells of private files or scripts that its name and its first sentence are not about.

    (0, 0) if it is a parameter.
    """
    private = any(map(_PRIVATE_PARAMETER.search, parameters))
    lowered = description.lower()
    if not (private or _SHAPES.search(lowered) or _PIPED.search(lowered)):
        return None
    description = without_mentions(description)
    classes, spans = _classify(description)
    first = classes.find("|", 1)
    opening = description[: spans[first][0] if first > 0 else len(description)]
    about = set(spelled_words(split_identifier(name))) | set(spelled_words(_TOKEN.sub(_keep_words, opening.lower())))
    if about & _PRIVATE_BUSINESS:
        return None
    if found := _HANDLES_PRIVATE.search(classes):
        return spans[found.start()][0], spans[found.end() - 1][1]
    if piped := _PIPED.search(description):
        return piped.span()
    return (0, 0) if private else None


def _keep_words(token: re.Match[str]) -> str:
    return " " if token.lastgroup in ("F", "X", "L0") else token[0]
