"""The console in AWS: private files, headers of the one file that says them, every call of the API and nothing more."""

import json
import re
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import pytest

from infra.constructs import console
from infra.constructs.discovery_api import CALLS
from infra.vendor import ROOT
from tests.aws import iam
from tests.aws.deployment import Deployment
from tests.infra.synth import CONSOLE, HOST, JWT, SIGN_IN, deployment, templates

HEADERS = json.loads((ROOT / "console" / "headers.json").read_text())
KINDS = ("AWS::CloudFront::", "AWS::S3::", "Custom::")
ISSUER = console.SignIn(issuer=JWT["jwt_issuer"], client_id=SIGN_IN["console_client_id"], audience=JWT["jwt_audience"])


def distribution(**context: str) -> dict[str, Any]:
    """The distribution's configuration as the template has it."""
    resources = templates(**context)["mats"]["Resources"].values()
    (found,) = (one["Properties"] for one in resources if one["Type"] == "AWS::CloudFront::Distribution")
    config: dict[str, Any] = found["DistributionConfig"]
    return config


@pytest.fixture(scope="module")
def made() -> Deployment:
    return deployment(**CONSOLE)


def test_files_are_where_the_local_service_has_them():
    found = console.files_of(None)
    assert found["index.html"] == (ROOT / "console" / "index.html").read_bytes()
    assert "console/index.html" not in found
    assert all(re.fullmatch(r"index\.html|console/[\w./-]+", name) for name in found)


def test_without_a_client_of_the_issuer_tokens_are_pasted():
    kept = (ROOT / "console" / "config.json").read_bytes()
    assert console.files_of(None)["console/config.json"] == kept
    assert console.file_headers(None) == HEADERS


def test_with_a_client_one_signs_in_at_the_issuer_and_may_speak_to_it_and_to_nobody_else():
    sign_in = replace(ISSUER, issuer="https://Issuer.example.com:8443/realms/mats")
    assert json.loads(console.files_of(sign_in)["console/config.json"]) == {
        "signIn": {
            "issuer": "https://Issuer.example.com:8443/realms/mats",
            "clientId": SIGN_IN["console_client_id"],
            "audience": JWT["jwt_audience"],
        }
    }
    policy = "Content-Security-Policy"
    allowed = console.file_headers(sign_in)
    assert allowed[policy].replace(" https://issuer.example.com:8443", "", 1) == HEADERS[policy]
    assert "connect-src 'self' https://issuer.example.com:8443;" in allowed[policy]
    assert allowed | {policy: HEADERS[policy]} == HEADERS


def test_a_token_endpoint_elsewhere_may_be_spoken_to():
    policy = console.file_headers(replace(ISSUER, token_host="sign-in.example.com"))["Content-Security-Policy"]
    assert f"connect-src 'self' {ISSUER.issuer} https://sign-in.example.com;" in policy


server = pytest.mark.server


@server
@pytest.mark.parametrize("context", [{}, JWT], ids=["nothing chosen", "jwt"])
def test_there_is_none_unless_it_is_chosen(context: dict[str, str]):
    kinds = {one["Type"] for template in templates(**context).values() for one in template["Resources"].values()}
    assert not [kind for kind in kinds if kind.startswith(KINDS)]


@server
def test_the_rest_is_as_it_is_without_it():
    with_it, without = (templates(**context)["mats"]["Resources"] for context in (CONSOLE, JWT))
    assert {id: one for id, one in with_it.items() if id in without} == without
    assert all(id.startswith(("Console", "Custom")) for id in with_it if id not in without)


@server
def test_the_files_are_private_encrypted_and_spoken_to_only_over_tls(made: Deployment):
    bucket = made.one("AWS::S3::Bucket")
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert bucket["BucketEncryption"]
    said = made.one("AWS::S3::BucketPolicy").raw["PolicyDocument"]["Statement"]
    (refused,) = (one for one in said if one["Effect"] == "Deny")
    assert refused["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    readers = [one for one in said if one["Principal"] == {"Service": "cloudfront.amazonaws.com"}]
    assert [(one["Action"], list(one["Condition"])) for one in readers] == [
        (["s3:GetObject", "s3:ListBucket"], ["StringEquals"])  # who may list hears 404 of what is not there
    ]
    source = readers[0]["Condition"]["StringEquals"]["AWS:SourceArn"]
    assert made.one("AWS::CloudFront::Distribution").id in json.dumps(source)
    assert [one for one in said if one["Effect"] == "Allow" and "AWS" not in one["Principal"]] == readers


@server
def test_the_bucket_is_reached_through_an_origin_access_control():
    (files,) = (one for one in distribution(**CONSOLE)["Origins"] if "S3OriginConfig" in one)
    assert files["OriginAccessControlId"]
    assert files["S3OriginConfig"] == {"OriginAccessIdentity": ""}


@server
@pytest.mark.parametrize(("context", "sign_in"), [(CONSOLE, None), (SIGN_IN, ISSUER)], ids=["tokens", "sign-in"])
def test_every_answer_has_the_headers_of_the_one_file_and_hsts(context: dict[str, str], sign_in: console.SignIn | None):
    policy = deployment(**context).one("AWS::CloudFront::ResponseHeadersPolicy")
    config = policy["ResponseHeadersPolicyConfig"]
    known = config["SecurityHeadersConfig"]
    assert known["StrictTransportSecurity"]["AccessControlMaxAgeSec"] >= 31_536_000
    assert {one["Header"]: one["Value"] for one in config["CustomHeadersConfig"]["Items"]} | {
        "Content-Security-Policy": known["ContentSecurityPolicy"]["ContentSecurityPolicy"],
        "Referrer-Policy": known["ReferrerPolicy"]["ReferrerPolicy"],
        "X-Frame-Options": known["FrameOptions"]["FrameOption"],
        "X-Content-Type-Options": "nosniff" if known["ContentTypeOptions"] else "",
    } == console.file_headers(sign_in)
    served = distribution(**context)
    for one in (served["DefaultCacheBehavior"], *served["CacheBehaviors"]):
        assert one["ResponseHeadersPolicyId"] == {"Ref": policy.id}


@server
def test_every_call_goes_to_the_api_uncached_with_all_that_the_caller_sent():
    served = distribution(**CONSOLE)
    (api,) = (one for one in served["Origins"] if "CustomOriginConfig" in one)
    for one in served["CacheBehaviors"]:
        assert one["TargetOriginId"] == api["Id"]
        assert one["ViewerProtocolPolicy"] == "https-only"
        assert one["CachePolicyId"] == "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"  # AWS's CachingDisabled
        assert one["OriginRequestPolicyId"] == "b689b0a8-53d0-40ab-baf2-68738e2966ac"  # AllViewerExceptHostHeader
    for method, path in CALLS:
        asked = re.sub(r"\{.*\}", "com.acme/one", path)
        (one,) = (one for one in served["CacheBehaviors"] if fnmatchcase(asked, one["PathPattern"]))
        assert method in one["AllowedMethods"]


@server
def test_nothing_but_calls_goes_to_the_api():
    patterns = [one["PathPattern"] for one in distribution(**CONSOLE)["CacheBehaviors"]]
    files = "/ /index.html /console/main.js /registry /registry/capabilities".split()
    for path in files:
        assert not [pattern for pattern in patterns if fnmatchcase(path, pattern)], path


@server
def test_an_error_is_passed_on_unchanged_and_not_kept():
    errors = distribution(**CONSOLE)["CustomErrorResponses"]
    assert {tuple(sorted(one)) for one in errors} == {("ErrorCachingMinTTL", "ErrorCode")}
    assert {one["ErrorCachingMinTTL"] for one in errors} == {0}
    assert {403, 404, 503} <= {one["ErrorCode"] for one in errors}


@server
def test_files_are_asked_for_over_https_and_the_root_is_the_page():
    served = distribution(**CONSOLE)
    assert served["DefaultRootObject"] == "index.html"
    assert served["DefaultCacheBehavior"]["ViewerProtocolPolicy"] == "redirect-to-https"
    assert served["HttpVersion"] == "http2and3"


@server
@pytest.mark.parametrize("host", [{}, HOST], ids=["execute-api", "host name of one's own"])
def test_the_api_is_reached_where_it_answers(host: dict[str, str]):
    (api,) = (one for one in distribution(**CONSOLE, **host)["Origins"] if "CustomOriginConfig" in one)
    assert api["CustomOriginConfig"]["OriginProtocolPolicy"] == "https-only"
    assert api["CustomOriginConfig"]["OriginSSLProtocols"] == ["TLSv1.2"]
    made = deployment(**CONSOLE, **host)
    name, path = made.resolve([api["DomainName"], api.get("OriginPath", "")], list(templates()).index("mats"))
    if host:
        assert (name, path) == (HOST["domain_name"], "")
    else:
        assert name == f"{made.one('AWS::ApiGateway::RestApi').ref}.execute-api.{made.region}.amazonaws.com"
        assert path == f"/{made.one('AWS::ApiGateway::Stage').ref}"


@server
def test_files_are_revalidated_and_replaced_at_each_deployment(made: Deployment):
    copied = made.one("Custom::CDKBucketDeployment")
    assert copied["SystemMetadata"] == {"cache-control": "no-cache"}
    assert copied["Prune"] is True
    assert copied.raw["DistributionId"] == {"Ref": made.one("AWS::CloudFront::Distribution").id}


@server
def test_who_copies_the_files_may_write_that_bucket_alone(made: Deployment):
    copier = made.one("AWS::Lambda::Function", "BucketDeployment")
    allowed = iam.statements(made, iam.role_of(made, copier))
    files = made.one("AWS::S3::Bucket").arn
    writing = {"s3:PutObject", "s3:DeleteObject"}
    for one in allowed:
        if writing & set(one["Action"]):
            assert one["Resource"] == f"{files}/*"
    assert iam.allowed(allowed, "s3:PutObject", f"{files}/index.html")
    assert not iam.allowed(allowed, "s3:PutObject", "arn:aws:s3:::another/index.html")


@server
def test_its_address_is_put_out():
    assert "ConsoleUrl" in templates(**CONSOLE)["mats"]["Outputs"]
    assert "ConsoleUrl" not in templates(**JWT)["mats"]["Outputs"]
