"""An SNS topic that sends mail."""

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct


def mail_topic(scope: Construct, id: str, email: str, *, sender: str) -> sns.Topic:
    """A topic that a service of AWS sends to.

    Encrypted with a customer managed key, because another service may not use the AWS managed one of SNS.
    """
    service = iam.ServicePrincipal(sender, conditions={"StringEquals": {"aws:SourceAccount": Stack.of(scope).account}})
    key = kms.Key(scope, f"{id}Key", enable_key_rotation=True, removal_policy=RemovalPolicy.DESTROY)
    key.grant(service, "kms:Decrypt", "kms:GenerateDataKey*")
    topic = sns.Topic(scope, id, master_key=key, enforce_ssl=True)
    topic.grant_publish(service)
    topic.add_subscription(subscriptions.EmailSubscription(email))
    return topic
