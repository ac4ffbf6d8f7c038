"""The authorizer with real keys and an issuer on loopback."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from dataclasses import replace

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from functions.authorizer import handler
from mats.edge.api_gateway import parse_request
from mats.edge.authorizer import (
    MAX_TOKEN,
    FetchFailed,
    IssuerKeys,
    Unauthorized,
    authorize,
)
from mats.settings import Settings
from tests.servers.site import Asked, site

STAGE = "arn:aws:execute-api:eu-west-1:123456789012:abc123/live"
CALL = f"{STAGE}/POST/discover"
AUDIENCE = "mats"
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
WEAK = rsa.generate_private_key(public_exponent=65537, key_size=1024)
EC = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())


def jwk(private, name: str, **more: str) -> dict:
    algorithm = jwt.get_algorithm_by_name("RS256" if isinstance(private, rsa.RSAPrivateKey) else "ES256")
    return {**algorithm.to_jwk(private.public_key(), as_dict=True), "kid": name, **more}


class Issuer:
    """An OpenID provider: what it lists can be changed, and it can go away."""

    address = ""

    def __init__(self) -> None:
        self.keys: object = [jwk(RSA, "rsa", use="sig", alg="RS256"), jwk(EC, "ec")]
        self.configuration: object = None
        self.down = False
        self.redirects = False
        self.asked = 0

    def answer(self, asked: Asked) -> object:
        self.asked += 1
        if self.down:
            return 503
        if self.redirects:
            return 302, {"Location": f"{self.address}/elsewhere"}
        ours = {"issuer": self.address, "jwks_uri": f"{self.address}/keys"}
        found = {"/.well-known/openid-configuration": self.configuration or ours, "/keys": {"keys": self.keys}}
        return json.dumps(found[asked.path]).encode()


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    known = Issuer()
    with site(known.answer) as known.address:
        yield known


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Authorizer:
    """The authorizer of one issuer, with a clock of its own."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self.clock = Clock()
        self.keys = IssuerKeys(issuer.address, clock=self.clock)
        self.settings = Settings(jwt_issuer=issuer.address, jwt_audience=AUDIENCE)

    def token(self, private: object = EC, name: str | None = "ec", algorithm: str = "ES256", **claims: object) -> str:
        now = int(time.time())
        said = {"iss": self.issuer.address, "aud": AUDIENCE, "sub": "ada", "exp": now + 600, **claims}
        headers = {"kid": name} if name else {}
        return jwt.encode({k: v for k, v in said.items() if v is not None}, private, algorithm, headers=headers)

    def authorize(self, token: str, call: str = CALL) -> dict:
        return authorize({"type": "TOKEN", "authorizationToken": token, "methodArn": call}, self.settings, self.keys)

    def accepts(self, token: str) -> bool:
        try:
            return bool(self.authorize(f"Bearer {token}"))
        except Unauthorized:
            return False


@pytest.fixture
def authorizer(issuer: Issuer) -> Authorizer:
    return Authorizer(issuer)


def test_policy_covers_every_method_of_the_stage(authorizer):
    policy = authorizer.authorize(f"Bearer {authorizer.token(audiences=['finance', 'ops'])}")
    assert policy["principalId"] == "ada"
    assert policy["context"] == {"audiences": "finance,ops"}
    request = parse_request({"requestContext": {"authorizer": policy["context"]}})
    assert request.caller.audiences == {"finance", "ops"}
    assert policy["policyDocument"]["Statement"] == [
        {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": f"{STAGE}/*"}
    ]


@pytest.mark.parametrize(
    ("claim", "names"),
    [(None, ""), ([], ""), ("", ""), ("a  b", "a,b"), (["a", "b", "a"], "a,b"), (["two words"], "two words")],
)
def test_audiences_claim_is_a_list_a_text_or_absent(authorizer, claim, names):
    assert authorizer.authorize(f"Bearer {authorizer.token(audiences=claim)}")["context"]["audiences"] == names


@pytest.mark.parametrize("claim", [["a,b"], "a,b", [" a"], [""], ["a\nb"], {"a": 1}, 7, [1], True])
def test_ambiguous_audiences_are_rejected(authorizer, claim):
    assert not authorizer.accepts(authorizer.token(audiences=claim))


@pytest.mark.parametrize(("claim", "claims", "names"), [
    ("cognito:groups", {"cognito:groups": ["ops"], "audiences": ["finance"]}, "ops"),
    ("https://acme.example/audiences", {"https://acme.example/audiences": "ops"}, "ops"),
    ("realm_access.roles", {"realm_access": {"roles": ["ops", "finance"]}}, "ops,finance"),
    ("realm_access.roles", {"realm_access": ["ops"]}, ""), ("realm_access.roles", {}, ""),
])  # fmt: skip
def test_claim_of_audiences_is_configurable(authorizer, claim, claims, names):
    authorizer.settings = Settings(jwt_issuer=authorizer.issuer.address, jwt_audience=AUDIENCE, jwt_claim=claim)
    assert authorizer.authorize(f"Bearer {authorizer.token(**claims)}")["context"]["audiences"] == names


@pytest.mark.parametrize("claims", [
    {"iss": "https://other.example"}, {"aud": "another"}, {"exp": 1}, {"nbf": 4_102_444_800}, {"exp": None},
    {"iss": None}, {"aud": None}, {"sub": None}, {"sub": ""}, {"sub": "a\nb"}, {"sub": "a" * 256}, {"exp": "soon"},
], ids=str)  # fmt: skip
def test_token_for_another_issuer_audience_or_time_is_rejected(authorizer, claims):
    assert not authorizer.accepts(authorizer.token(**claims))


@pytest.mark.parametrize(("claim", "seconds", "accepted"), [
    ("exp", -20, True), ("exp", -60, False), ("nbf", 20, True), ("nbf", 60, False),
])  # fmt: skip
def test_clocks_may_differ_by_half_a_minute(authorizer, claim, seconds, accepted):
    assert authorizer.accepts(authorizer.token(**{claim: int(time.time()) + seconds})) is accepted


@pytest.mark.parametrize(("claims", "accepted"), [
    ({"client_id": "agents"}, True), ({"client_id": "others"}, False), ({}, False), ({"client_id": ["agents"]}, False),
    ({"client_id": None}, False), ({"client_id": "agents", "aud": "another"}, False),
    ({"client_id": "agents", "aud": []}, False), ({"client_id": "agents", "aud": AUDIENCE}, True),
])  # fmt: skip
def test_a_token_without_an_audience_is_of_a_known_client(authorizer, claims, accepted):
    """An access token of Cognito, for client credentials."""
    authorizer.settings = replace(authorizer.settings, jwt_client_ids=("agents",))
    assert authorizer.accepts(authorizer.token(**{"aud": None, "token_use": "access", **claims})) is accepted
    authorizer.settings = replace(authorizer.settings, jwt_audience="")
    assert authorizer.accepts(authorizer.token(**{"aud": None, **claims})) is (accepted and "aud" not in claims)


def with_audiences(token: str) -> str:
    head, body, signature = token.split(".")
    more = json.loads(base64.urlsafe_b64decode(body + "==")) | {"audiences": ["finance"]}
    return f"{head}.{encoded(json.dumps(more).encode())}.{signature}"


@pytest.mark.parametrize(("token", "accepted"), [
    (lambda known: known.token(EC, "ec", "ES256"), True),
    (lambda known: known.token(RSA, "rsa", "RS256"), True),
    (lambda known: known.token(aud=["another", AUDIENCE]), True),
    (lambda known: known.token(None, "ec", "none"), False),
    (lambda known: known.token().rpartition(".")[0] + ".", False),
    (lambda known: known.token(RSA, "ec", "RS256"), False),
    (lambda known: known.token(RSA, "rsa", "RS512"), False),
    (lambda known: known.token(OTHER, "ec"), False),
    (lambda known: with_audiences(known.token()), False),
    (lambda known: encoded(b'{"alg":' + b"[" * 5000) + ".e30.e30", False),
])  # fmt: skip
def test_only_signatures_of_the_issuer_are_accepted(authorizer, token, accepted):
    assert authorizer.accepts(token(authorizer)) is accepted


@pytest.mark.parametrize("header", [
    "", "Bearer", "Bearer ", "Basic YTpi", "Bearer a b.c.d", None, 7, "ey.ey.ey", f"Bearer {'x' * MAX_TOKEN}",
], ids=lambda header: str(header)[:12])  # fmt: skip
def test_malformed_authorization_is_rejected_without_a_fetch(authorizer, header):
    with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
        authorizer.authorize(header)
    assert authorizer.issuer.asked == 0


def test_foreign_method_and_missing_settings_are_rejected(authorizer):
    with pytest.raises(Unauthorized):
        authorizer.authorize(f"Bearer {authorizer.token()}", call="arn:aws:s3:::bucket")
    authorizer.settings, authorizer.keys = Settings(), IssuerKeys("")
    assert not authorizer.accepts(authorizer.token())


def test_keys_that_may_not_sign_are_ignored(authorizer):
    secret = b"s" * 32
    shared = {"kty": "oct", "k": encoded(secret), "kid": "shared", "alg": "HS256"}
    authorizer.issuer.keys = [shared, jwk(RSA, "rsa", use="enc"), jwk(WEAK, "weak"), jwk(EC, "ec"), "x", {"kid": "x"}]
    authorizer.issuer.keys.append({"kid": "x", "kty": ["EC"]})
    assert set(authorizer.keys.fetch()) == {"ec"}
    assert not authorizer.accepts(authorizer.token(secret, "shared", "HS256"))
    assert not authorizer.accepts(authorizer.token(RSA, "rsa", "RS256"))


def test_public_key_is_never_used_as_shared_secret(authorizer):
    """The classic confusion: HS256 with what everybody can read as the secret."""
    _, body, _ = authorizer.token(RSA, "rsa", "RS256").split(".")
    head = encoded(json.dumps({"alg": "HS256", "kid": "rsa", "typ": "JWT"}).encode())
    for form in (PublicFormat.SubjectPublicKeyInfo, PublicFormat.PKCS1):
        secret = RSA.public_key().public_bytes(Encoding.PEM, form)
        signature = hmac.new(secret, f"{head}.{body}".encode(), hashlib.sha256).digest()
        assert not authorizer.accepts(f"{head}.{body}.{encoded(signature)}")


def test_unknown_key_ids_cause_one_fetch_per_pause(authorizer):
    assert authorizer.accepts(authorizer.token())
    authorizer.clock.now += IssuerKeys.PAUSE_S
    asked = authorizer.issuer.asked
    for number in range(20):
        assert not authorizer.accepts(authorizer.token(OTHER, f"forged-{number}"))
    assert authorizer.issuer.asked == asked + 2, "one configuration and one list of keys"


@pytest.mark.parametrize(
    ("pause_s", "signed"), [(IssuerKeys.PAUSE_S, [True, False]), (IssuerKeys.LIFESPAN_S, [False, True])]
)
def test_a_withdrawn_key_goes_with_the_next_fetch_for_a_new_one_or_with_the_cache(authorizer, pause_s, signed):
    assert authorizer.accepts(authorizer.token())
    authorizer.issuer.keys = [jwk(OTHER, "new")]
    authorizer.clock.now += pause_s
    for is_new in signed:
        assert authorizer.accepts(authorizer.token(OTHER, "new") if is_new else authorizer.token()) is is_new


def test_cached_keys_stay_valid_during_an_outage(authorizer):
    assert authorizer.accepts(authorizer.token())
    authorizer.issuer.down = True
    authorizer.clock.now += IssuerKeys.LIFESPAN_S
    assert authorizer.accepts(authorizer.token())
    asked = authorizer.issuer.asked
    assert authorizer.accepts(authorizer.token())
    assert authorizer.issuer.asked == asked, "asked in a loop"


def test_failed_fetch_is_retried_after_the_pause(authorizer):
    authorizer.issuer.down = True
    assert not authorizer.accepts(authorizer.token())
    authorizer.issuer.down = False
    assert not authorizer.accepts(authorizer.token())
    authorizer.clock.now += IssuerKeys.PAUSE_S
    assert authorizer.accepts(authorizer.token())


@pytest.mark.parametrize(
    "configuration",
    [
        {"issuer": "https://other.example", "jwks_uri": "{address}/keys"},
        {"issuer": "{address}", "jwks_uri": "http://other.example/keys"},
        {"issuer": "{address}", "jwks_uri": "file:///etc/passwd"},
        {"issuer": "{address}"},
        ["not an object"],
    ],
    ids=str,
)
def test_foreign_issuer_configuration_is_rejected(authorizer, configuration):
    authorizer.issuer.configuration = json.loads(
        json.dumps(configuration).replace("{address}", authorizer.issuer.address)
    )
    assert not authorizer.accepts(authorizer.token())


def test_redirect_is_not_followed(authorizer):
    authorizer.issuer.redirects = True
    assert not authorizer.accepts(authorizer.token())
    assert authorizer.issuer.asked == 1


@pytest.mark.parametrize("keys", [[], None, {"kid": "ec"}, ["x" * 300_000]], ids=lambda keys: type(keys).__name__)
def test_key_set_without_usable_keys_is_a_failed_fetch(authorizer, keys):
    authorizer.issuer.keys = keys
    with pytest.raises(FetchFailed):
        authorizer.keys.fetch()


def test_log_has_the_reason_and_never_the_token(authorizer, caplog):
    token = authorizer.token(exp=1)
    assert not authorizer.accepts(token)
    assert "ExpiredSignatureError" in caplog.text
    assert token not in caplog.text


def test_function_reads_its_settings_from_the_environment(authorizer, monkeypatch):
    for name, value in authorizer.settings.to_env().items():
        monkeypatch.setenv(name, value)
    handler._settings_and_keys.cache_clear()
    event = {"type": "TOKEN", "authorizationToken": f"bearer {authorizer.token()}", "methodArn": CALL}
    assert handler.handle(event, None)["principalId"] == "ada"
    handler._settings_and_keys.cache_clear()


class Known(IssuerKeys):
    """Keys that need no issuer, so that a thousand tokens take no time."""

    def __init__(self) -> None:
        super().__init__("https://issuer.example", clock=lambda: 0.0)
        self._keys = {"ec": jwt.PyJWK(jwk(EC, "ec"), "ES256"), "rsa": jwt.PyJWK(jwk(RSA, "rsa"), "RS256")}
        self._fetched_at = 0.0


SETTINGS = Settings(jwt_issuer="https://issuer.example", jwt_audience=AUDIENCE)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def unauthorized_or_policy(header: object, call: object = CALL) -> dict | None:
    try:
        policy = authorize({"authorizationToken": header, "methodArn": call}, SETTINGS, Known())
    except Unauthorized:
        return None
    assert set(policy) == {"principalId", "policyDocument", "context"}
    return policy


@given(JSON | st.text(), JSON | st.just(CALL))
def test_any_event_gets_a_policy_or_unauthorized(header, call):
    assert unauthorized_or_policy(header, call) is None


@given(
    algorithm=st.sampled_from(["RS256", "ES256", "none", "HS256", "PS256", "EdDSA", ""]) | JSON,
    name=st.sampled_from(["ec", "rsa"]) | JSON,
    more=st.dictionaries(st.sampled_from(["typ", "crit", "jwk", "jku", "x5u", "b64", "zip", "cty"]), JSON, max_size=2),
    signature=st.binary(max_size=300),
)
def test_any_token_header_without_valid_signature_is_rejected(algorithm, name, more, signature):
    head = json.dumps({"alg": algorithm, "kid": name, **more}).encode()
    assert unauthorized_or_policy(f"Bearer {encoded(head)}.e30.{encoded(signature)}") is None


@given(
    claims=st.dictionaries(
        st.sampled_from(["sub", "aud", "iss", "exp", "nbf", "iat", "jti", "audiences"]), JSON, max_size=4
    )
)
def test_any_signed_claims_get_a_stage_policy_or_unauthorized(claims):
    said = {"iss": SETTINGS.jwt_issuer, "aud": AUDIENCE, "sub": "ada", "exp": int(time.time()) + 600, **claims}
    signed = jwt.api_jws.encode(json.dumps(said).encode(), EC, "ES256", headers={"kid": "ec"})
    policy = unauthorized_or_policy(f"Bearer {signed}")
    if policy:
        assert policy["policyDocument"]["Statement"][0]["Resource"] == f"{STAGE}/*"
        assert isinstance(policy["principalId"], str)
        assert isinstance(policy["context"]["audiences"], str)


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
