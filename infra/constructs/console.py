"""The console on CloudFront: its files in a private bucket, and one address for them and for the API."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from aws_cdk import Aws, CfnOutput, Duration, RemovalPolicy, Stack
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_cloudfront as cloudfront
from aws_cdk import aws_cloudfront_origins as origins
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as assets
from aws_cdk import aws_s3_deployment as deployment
from constructs import Construct

from infra.constructs.discovery_api import CALLS, wildcard
from infra.constructs.nag import accept, accept_warning, accept_wildcards, logical_id
from infra.constructs.shared import Shared, allow
from infra.vendor import ROOT

_ERRORS = (400, 403, 404, 405, 414, 500, 501, 502, 503, 504)
"""Statuses that CloudFront would otherwise cache for ten seconds."""
_COPIER_MB = 512
_ASSETS = "cdk-hnb659fds-assets-<AWS::AccountId>-<AWS::Region>"  # The CDK's own bucket, as cdk-nag spells it


@dataclass(frozen=True, slots=True)
class SignIn:
    """How the console signs in at an issuer: as a public client, by an authorization code with PKCE."""

    issuer: str
    client_id: str
    audience: str
    token_host: str = ""  # Of the token endpoint, if it differs from the issuer's

    @property
    def sources(self) -> str:
        """The origins that the console connects to."""
        issuer = f"https://{urlsplit(self.issuer).netloc.lower()}"
        return f"{issuer} https://{self.token_host}" if self.token_host else issuer


class Console(Construct):
    """One origin for files and API, so no CORS; the API authorizes every call."""

    def __init__(
        self, scope: Construct, id: str, *, shared: Shared, api: apigateway.RestApi, host: str, sign_in: SignIn | None
    ) -> None:
        """`host` is the API's name, if it has one; without `sign_in` users paste a token."""
        super().__init__(scope, id)
        self._name = f"{shared.name}-console-{Aws.REGION}"
        self.bucket = s3.Bucket(
            self,
            "Files",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            removal_policy=RemovalPolicy.DESTROY,
            auto_delete_objects=True,
        )
        self.distribution = self._distribution(_origin(api, host), sign_in)
        self._copy(shared, sign_in)
        address = f"https://{self.distribution.distribution_domain_name}/"
        CfnOutput(self, "Url", value=address).override_logical_id("ConsoleUrl")
        self._accept()

    def _distribution(self, api: cloudfront.IOrigin, sign_in: SignIn | None) -> cloudfront.Distribution:
        headers = _headers(self, self._name, file_headers(sign_in))
        calls = cloudfront.BehaviorOptions(
            origin=api,
            viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.HTTPS_ONLY,  # a redirect would come after the token
            allowed_methods=cloudfront.AllowedMethods.ALLOW_ALL,
            cache_policy=cloudfront.CachePolicy.CACHING_DISABLED,
            origin_request_policy=cloudfront.OriginRequestPolicy.ALL_VIEWER_EXCEPT_HOST_HEADER,
            response_headers_policy=headers,
        )
        return cloudfront.Distribution(
            self,
            "Distribution",
            comment="mats: console and API",
            default_root_object="index.html",
            http_version=cloudfront.HttpVersion.HTTP2_AND_3,
            default_behavior=cloudfront.BehaviorOptions(
                origin=self._files(),
                viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.REDIRECT_TO_HTTPS,
                cache_policy=cloudfront.CachePolicy.CACHING_OPTIMIZED,
                response_headers_policy=headers,
            ),
            additional_behaviors={wildcard(path): calls for _, path in CALLS},
            error_responses=[
                cloudfront.ErrorResponse(http_status=status, ttl=Duration.seconds(0)) for status in _ERRORS
            ],
        )

    def _files(self) -> cloudfront.IOrigin:
        """The bucket, for this distribution alone; with the right to list, a missing file is 404, not 403."""
        return origins.S3BucketOrigin.with_origin_access_control(
            self.bucket,
            origin_access_control=cloudfront.S3OriginAccessControl(
                self, "Access", origin_access_control_name=self._name
            ),
            origin_access_levels=[cloudfront.AccessLevel.READ, cloudfront.AccessLevel.LIST],
        )

    def _copy(self, shared: Shared, sign_in: SignIn | None) -> None:
        with TemporaryDirectory() as folder:
            for name, content in files_of(sign_in).items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            asset = assets.Asset(self, "Asset", path=folder)
        log = shared.log_group(self, "CopierLog")
        copied = deployment.BucketDeployment(
            self,
            "Copied",
            sources=[deployment.Source.bucket(asset.bucket, asset.s3_object_key)],
            destination_bucket=self.bucket,
            cache_control=[deployment.CacheControl.no_cache()],
            distribution=self.distribution,
            memory_limit=_COPIER_MB,
            role=self._copier(asset, log).without_policy_updates(),
            log_group=log,
        )
        copied.node.add_dependency(self.role)

    def _copier(self, asset: assets.Asset, log: logs.LogGroup) -> iam.Role:
        """Role of the CDK's function that copies the files at deployment, with fewer rights than its default."""
        allowed = {
            # not by its key: the next asset has another key, and a changed policy takes time to take effect
            asset.bucket.arn_for_objects("*"): ["s3:GetObject"],
            self.bucket.bucket_arn: ["s3:ListBucket"],
            self.bucket.arn_for_objects("*"): ["s3:PutObject", "s3:DeleteObject"],
            self.distribution.distribution_arn: ["cloudfront:CreateInvalidation", "cloudfront:GetInvalidation"],
            log.log_group_arn: ["logs:CreateLogStream", "logs:PutLogEvents"],
        }
        rights = [allow(*actions, on=arn) for arn, actions in allowed.items()]
        runs, policy = iam.ServicePrincipal("lambda.amazonaws.com"), iam.PolicyDocument(statements=rights)
        self.role = iam.Role(self, "CopierRole", assumed_by=runs, inline_policies={"Copy": policy})
        return self.role

    def _accept(self) -> None:
        accept(self.bucket, S1="Its files are for everybody; what is asked of the API is in the API's own log")
        accept(
            self.distribution,
            CFR1="Who may ask is for the token to say, not the country",
            CFR2="waf=true puts a firewall in front of the API; behind this address else are files for everybody",
            CFR3="The API has its own access log and the files are for everybody; CloudFront's needs us-east-1 or ACLs",
            CFR4="The host name is CloudFront's own, and so is its TLS policy, which cannot be chosen",
        )
        accept_warning(
            self.distribution,
            "@aws-cdk/aws-cloudfront-origins:listBucketSecurityRisk",
            "The default root object is set, and what lists a bucket is in the query, which is not handed on",
        )
        accept_wildcards(
            self.role,
            [f"<{logical_id(self.bucket)}.Arn>/*"],
            "It keeps the whole bucket as the repository has it, and the bucket holds nothing else",
        )
        accept_wildcards(
            self.role,
            [f"arn:<AWS::Partition>:s3:::{_ASSETS}/*"],
            "What the CDK put there to be deployed; the key of the next asset is not known before",
        )
        for each in Stack.of(self).node.children:
            if each.node.id.startswith("Custom::CDKBucketDeployment"):
                accept(each, L1="The CDK's own function; its runtime comes with the CDK")


def _origin(api: apigateway.RestApi, host_name: str) -> cloudfront.IOrigin:
    """The API's address: the custom host name if there is one, without a stage, else the stage."""
    if not host_name:
        return origins.RestApiOrigin(api)
    return origins.HttpOrigin(
        host_name,
        protocol_policy=cloudfront.OriginProtocolPolicy.HTTPS_ONLY,
        origin_ssl_protocols=[cloudfront.OriginSslPolicy.TLS_V1_2],
    )


def _headers(scope: Construct, name: str, headers: Mapping[str, str]) -> cloudfront.ResponseHeadersPolicy:
    """These headers on every response; CloudFront has typed options for the security headers."""
    rest = dict(headers)
    assert rest.pop("X-Content-Type-Options") == "nosniff"  # noqa: S101 - there is no other value
    referrer = rest.pop("Referrer-Policy").upper().replace("-", "_")
    return cloudfront.ResponseHeadersPolicy(
        scope,
        "Headers",
        response_headers_policy_name=name,
        security_headers_behavior=cloudfront.ResponseSecurityHeadersBehavior(
            content_security_policy=cloudfront.ResponseHeadersContentSecurityPolicy(
                content_security_policy=rest.pop("Content-Security-Policy"), override=True
            ),
            content_type_options=cloudfront.ResponseHeadersContentTypeOptions(override=True),
            frame_options=cloudfront.ResponseHeadersFrameOptions(
                frame_option=cloudfront.HeadersFrameOption[rest.pop("X-Frame-Options")], override=True
            ),
            referrer_policy=cloudfront.ResponseHeadersReferrerPolicy(
                referrer_policy=cloudfront.HeadersReferrerPolicy[referrer], override=True
            ),
            strict_transport_security=cloudfront.ResponseHeadersStrictTransportSecurity(
                access_control_max_age=Duration.days(365), include_subdomains=False, override=True
            ),
        ),
        custom_headers_behavior=cloudfront.ResponseCustomHeadersBehavior(
            custom_headers=[
                cloudfront.ResponseCustomHeader(header=name, value=value, override=True) for name, value in rest.items()
            ]
        ),
    )


_CONSOLE = ROOT / "console"
_POLICY = "Content-Security-Policy"


def files_of(sign_in: SignIn | None) -> dict[str, bytes]:
    """Every file by its path, as the local service serves them; `console/config.json` says how to sign in."""
    paths = sorted(path for path in _CONSOLE.glob("**/*") if path.is_file() and not path.name.startswith("."))
    content = {f"console/{path.relative_to(_CONSOLE).as_posix()}": path.read_bytes() for path in paths}
    content["index.html"] = content.pop("console/index.html")
    said = sign_in and {"issuer": sign_in.issuer, "clientId": sign_in.client_id, "audience": sign_in.audience}
    return content | {"console/config.json": f"{json.dumps({'signIn': said})}\n".encode()}


def file_headers(sign_in: SignIn | None) -> dict[str, str]:
    """The headers in console/headers.json; with sign-in, the policy also allows connections to the issuer."""
    headers: dict[str, str] = json.loads((_CONSOLE / "headers.json").read_text("utf-8"))
    if sign_in:
        parts = [part.strip() for part in headers[_POLICY].split(";")]
        (allowed,) = (part for part in parts if part.startswith("connect-src "))
        headers[_POLICY] = "; ".join(f"{part} {sign_in.sources}" if part == allowed else part for part in parts)
    return headers
