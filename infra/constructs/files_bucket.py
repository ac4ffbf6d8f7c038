"""The bucket of an index in files, for `size=small`; each role may do with it what its function does."""

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import CfnOutput, Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.constructs.nag import accept, accept_wildcards, logical_id
from infra.constructs.shared import Shared, allow
from mats.settings import Settings

_CREATES = {"Null": {"s3:if-none-match": "false"}}  # Only an object that does not exist
_LOOK = ("GetObject", "GetObjectVersion")
_RIGHTS: Mapping[str, Sequence[tuple[Sequence[str], Sequence[str], Mapping[str, Any] | None]]] = {
    "discovery": [(_LOOK, ["index/*", "memory/*"], None)],
    "enrichment": [(_LOOK, ["index/HEAD"], None), (["PutObject"], ["index/HEAD", "index/*/log/*"], _CREATES)],
    "learning": [(_LOOK, ["memory/HEAD"], None), (["PutObject"], ["memory/HEAD", "memory/*/log/*"], _CREATES)],
    "maintenance": [((*_LOOK, "PutObject", "DeleteObject"), ["index/*", "memory/*"], None)],
}
"""By function: actions on objects, their keys, and a condition."""


class FilesBucket(Construct):
    """Its content can be made again from Profiles and Outcomes. What was deleted stays for a week."""

    engine_version = Settings().index_engine  # It has no engine

    def __init__(self, scope: Construct, id: str, *, shared: Shared) -> None:
        super().__init__(scope, id)
        self.bucket = s3.Bucket(
            self,
            "Files",
            encryption=s3.BucketEncryption.KMS if shared.key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=shared.key,
            bucket_key_enabled=True if shared.key else None,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            versioned=True,
            lifecycle_rules=[
                s3.LifecycleRule(noncurrent_version_expiration=Duration.days(7), expired_object_delete_marker=True),
                s3.LifecycleRule(abort_incomplete_multipart_upload_after=Duration.days(1)),
            ],
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        accept(self.bucket, S1="Only functions of the stack read it; the logs of their calls are in theirs")
        self.address = f"s3://{self.bucket.bucket_name}"
        CfnOutput(self, "Name", value=self.address).override_logical_id("IndexEndpoint")

    def grant(self, role: iam.IRole, function: str) -> None:
        """The rights of a function; without that to list, a missing object would be a denied one."""
        role.add_to_principal_policy(allow("s3:ListBucket", "s3:ListBucketVersions", on=self.bucket.bucket_arn))
        for actions, keys, condition in _RIGHTS[function]:
            calls, objects = (f"s3:{action}" for action in actions), [*map(self.bucket.arn_for_objects, keys)]
            role.add_to_principal_policy(allow(*calls, on=objects, where=condition))
            wild = [f"<{logical_id(self.bucket)}.Arn>/{key}" for key in keys if "*" in key]
            accept_wildcards(role, wild, "Records and files have numbers")
