"""Patterns of text that addresses a model, by reason, in fifteen languages.

Where the first of a pattern's outermost alternatives begins at the edge of a word, each of them does.
"""

from collections.abc import Mapping, Sequence

ORDERS = "contains instructions to a model"
RANK = "names its own score or rank"
ROLE = "poses as a message of another role"
FENCE = "contains the tags that delimit prompts"
RESULT = "poses as the result of a tool"

_OTHERS = "(candidate|capabilit|tool|agent|model|skill|option|result)"
PATTERNS: Mapping[str, Sequence[str]] = {
    ORDERS: (
        r"\b(ignore|disregard|forget|override|bypass)\b[^.]{0,30}"
        r"\b(previous|prior|above|earlier|preceding|your|system|all)\b[^.]{0,20}"
        r"\b(instructions?|prompts?|rules?|guidelines?|directions?|candidates?)\b",
        r"\b(ignore|disregard|forget) (everything|anything|all) (above|before|else)\b",
        r"\b(ignore|disregard|forget|skip|reject)\b[^.]{0,20}\b(other|remaining|competing)\b[^.]{0,20}" + _OTHERS,
        r"\b(always|must|should|only|please)\b[^.]{0,20}\b(choose|select|pick|recommend|prefer|rank|rate|score)\b"
        r"[^.]{0,20}\b(me|this (one|candidate|capability|tool|agent|model|skill))\b",
        r"\b(do not|don't|never)\b[^.]{0,10}\b(choose|select|pick|recommend|rank|consider|return|use)\b[^.]{0,15}"
        r"\b(other|another|competing) " + _OTHERS,
        r"\b(rank|place|put|score|rate) (this|me|us|it)\b[^.]{0,25}\b(above|before|ahead of|over)\b[^.]{0,15}"
        r"\b(all|other|every)",
        r"\bgive (all|every|the)( the)? others?\b[^.]{0,20}\b(0|zero|nothing|low)",
        r"\b(notes?|messages?|instructions?|hints?|attention) (to|for) (the|any|every) "
        r"(judge|ranker|reranker|grader|evaluator|language model|llm)\b|"
        r"\bto (the|any|every) (judge|ranker|reranker|grader|evaluator|language model|llm)\s*:",
        r"\bignor\w{0,15} [^.]{0,25}\b(instrucciones|instruções|istruzioni|instructions précédentes|consignes)\b",
        r"\b(ignorier\w{0,15}|vergiss|vergesst) [^.]{0,30}(anweisung|instruktion|vorgabe)",
        r"\b(olvida|oublie|oubliez|esqueça|dimentica) [^.]{0,30}(instruc|instruç|istruz|consigne)",
        r"\bignorera [^.]{0,30}instruktion|\babaikan [^.]{0,30}(instruksi|perintah)",
        r"\bbỏ qua [^.]{0,30}(hướng dẫn|chỉ dẫn)",
        r"ігноруй\w{0,15} [^.]{0,30}інструкц|התעלם [^.]{0,30}הוראות|نادیده [^.]{0,30}دستور|دستور[^.]{0,30}نادیده",
        r"\bnegeer [^.]{0,30}(instructies|opdrachten)",
        r"\bzignoruj [^.]{0,30}(instrukcj|polece)",
        r"игнорир\w{0,15} [^.]{0,30}(инструкц|указани)",
        r"(忽略|忽視|忽视|无视|無視)[^。]{0,12}(指令|指示|说明|說明|提示|规则|規則)",
        r"(指示|命令|指令|ルール)[^。]{0,6}を?[^。]{0,6}無視",
        r"(지시|지침|명령)[^.]{0,8}무시",
        r"تجاهل [^.]{0,30}(التعليمات|الأوامر)",
        r"निर्देश\w{0,15}[^।]{0,12}(अनदेखा|नज़रअंदाज़)",
        r"talimat\w{0,15}[^.]{0,12}(yok say|görmezden gel)",
        r"\b(elige|escoge|selecciona|escolha|selecione|scegli|seleziona|choisi\w{0,15}) (siempre|sempre|toujours)\b",
        r"\b(siempre|sempre|toujours) (elige|escoge|selecciona|escolha|selecione|scegli|seleziona|choisi\w{0,15})\b",
        r"\bwählen? (sie )?(immer|stets)\b|\b(immer|stets) (mich|dieses?|diese[nr]) [^.]{0,20}wählen\b",
        r"всегда (выбирай|выбирать|выбери)",
        r"(总是|總是|始终|始終|永远|永遠|务必|務必)[^。]{0,6}(选择|選擇|推荐|推薦|选|選)",
        r"(常に|必ず)[^。]{0,12}(選択|選ん|選び|推薦)",
        r"항상[^.]{0,12}(선택|추천)",
    ),
    RANK: (
        r"\b(give|assign|award|rate|score|rank)\b (this|me|us|it|candidate)\b[^.]{0,30}"
        r"\b(100|hundred|maximum|full marks|10/10|highest|first|top|number one|number 1)\b",
        r"\b(relevance|score|rating|ranking)\s*[:=]\s*(100\b(?!\s*%)|10/10)",
        r"\b(i am|this is) (the )?(only|best|correct|right) (answer|choice|candidate|match|result)\b",
        r"(?<!\w)[\"']?s[\"']?\s*:\s*\[\s*\d+\s*,\s*\d+",
    ),
    ROLE: (
        r"<\|?\s*(im_start|im_end|endoftext|begin_of_text|start_header_id|eot_id|system|assistant)\s*\|?>",
        r"\[/?(inst|sys)\]|<</?sys>>",
        r"(^|[\n\"'>])\s*(?-i:system|SYSTEM)\s*(prompt|message)?\s*:\s*\S",
        r"(^|[\n.!?\"'>])\s*(?-i:assistant|ASSISTANT)\s*(message)?\s*:\s*\S",
        r"[\"']role[\"']\s*:\s*[\"'](system|assistant|tool)[\"']",
        r"##\s*(system|assistant|instructions?)\s*:",
        r"\byou are (now|no longer) (a|an|the|in|free|bound)\b",
        r"\b(new|updated|real|actual|secret) (system )?(instructions?|prompt)\s*:",
        r"\b(end|begin|start) of (the )?(system )?(prompt|instructions|candidates|registration)\b",
    ),
    FENCE: (
        r"<\s*/?\s*(candidates|registration)(\s[^<>]{0,40})?>",
        r"<\s*/\s*(candidate|requests?|instructions?|system_prompt|prompt)\s*>",
    ),
    RESULT: (
        r"<\s*/?\s*(tool_?results?|tool_?use|tool_?calls?|function_?(results?|calls?|response))\b",
        r"[\"'](tool_?result|tool_?use|tooluseid|tool_use_id|function_call)[\"']\s*:",
    ),
}
