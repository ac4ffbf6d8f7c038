"""Capitalized words that name no product."""

from mats.domain.text.words import word_set

ACRONYMS = word_set(
    "AI API ASCII BGP BMI CD CDN CEO CI CLI CMS CO2 CPI CPU CRM CRUD CSS CSV CV DB DNA DNS DOCX DVD EPUB ERP "
    "ESG ETA ETF ETL EU EUR EXIF FAQ FTP GBP GCD GDP GDPR GIF GIS GMT GPS GPU GPT GUI HD HR HTML HTTP HTTPS "
    "IBAN ICS ID IDE IMAP IO IOT IP IPO ISBN ISIN ISO IT JPEG JPG JPY JSON JWT KPI KYC LCM LLM MAC MD MIME "
    "MIT ML MQTT NFT NGO NLP NPC OAUTH OCR OK OS OTP PC PDF PHP PII PIN PNG POI POS PPTX PR QA QR RAM REST "
    "RFC RGB RNA ROI RPC RSS SAAS SDK SEO SKU SLA SMS SMTP SOAP SQL SSH SSL SSO SVG TCP TLS TOML TSV TTL TTS "
    "TV TXT UDP UI UK UN UNIX UPC URI URL URN US USA USB USD UTC UTF UUID UX VAT VIN VPN WAV WIFI WWW XLS "
    "XLSX XML XSS YAML YTD ZIP"
)
"""Acronyms of common knowledge: formats, protocols, units, currencies, roles."""
CALENDAR_AND_SCIENCE = word_set(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july "
    "august september october november december internet web online boolean unicode markdown celsius "
    "fahrenheit kelvin phd mrna euclidean gaussian bayesian cartesian gregorian roman fibonacci levenshtein "
    "bluetooth ethernet earth english"
)
ORDINARY = CALENDAR_AND_SCIENCE | word_set(
    "i a an the this that these those it its they given when with without for from by on in at to of and or "
    "but if also each every all any both no not only one two three first then next use using used useful "
    "helps help lets let allows allow designed built made intended suited ideal good able based plus see note "
    "input inputs output outputs result results data service tool agent model skill user users client clients "
    "caller developer customer team people anyone everyone returns return get fetch find search list show "
    "give provide create make add read write update delete remove send receive convert translate compute "
    "calculate check verify validate analyze analyse generate summarize extract parse query look retrieve "
    "access manage run execute open close start stop set put post upload download import export filter sort "
    "rank compare match track monitor detect predict estimate classify recognize transcribe render draw play "
    "record store save load copy move rename sync merge split join format encode decode encrypt decrypt sign "
    "hash compress resize crop rotate book order buy sell pay refund charge transfer cancel schedule plan "
    "assign invite share publish deploy build test debug review edit fix explain answer ask tell suggest "
    "recommend teach learn train evaluate score measure count sum average random daily weekly monthly yearly "
    "current latest recent popular free public private local global automatic simple quick fast full complete "
    "detailed real live"
)
"""Words that a sentence begins with, in lower case."""
GENERIC = word_set(
    "demo demos project projects test tests testing tester tested sample samples example examples my your our "
    "new old app apps application applications api apis untitled unnamed noname hello world foo bar baz qux "
    "temp tmp dummy default placeholder mock copy draft final first second third try trial beta alpha dev "
    "prod staging version ver v the a an this is it of and tool tools agent agents model models skill skills "
    "service services server mcp rest web site website simple basic todo abc abcd xyz xxx name none null "
    "undefined thing stuff something whatever playground sandbox practice tutorial homework assignment one "
    "two three"
)
"""Words of project names that say nothing about what a capability does."""
