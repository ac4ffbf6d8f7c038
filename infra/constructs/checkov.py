"""Accepted findings of checkov, each with its reason, in the metadata of the resource: checkov reads them there."""

from aws_cdk import CfnResource
from constructs import IConstruct

FUNCTION = "AWS::Lambda::Function"
_BY_THE_CDK = "The CDK's own function, which runs during a deployment only"


def accept_checkov(where: IConstruct, **reasons: str) -> None:
    """Accept findings for the resource that a construct makes: check and reason."""
    made = where if CfnResource.is_cfn_resource(where) else where.node.default_child
    assert isinstance(made, CfnResource)  # noqa: S101 - what the construct is made of
    said = made.get_metadata("checkov") or {"skip": []}
    skipped = [*said["skip"], *({"id": check, "comment": reason} for check, reason in reasons.items())]
    made.add_metadata("checkov", {"skip": skipped})


def accept_checkov_in_functions_of_the_cdk(where: IConstruct) -> None:
    """Accept findings for functions that the CDK adds to a stack."""
    for child in where.node.children:
        if not child.node.id.startswith("Custom::"):
            continue
        for each in child.node.find_all():
            if isinstance(each, CfnResource) and each.cfn_resource_type == FUNCTION:
                accept_checkov(each, **dict.fromkeys(("CKV_AWS_115", "CKV_AWS_116", "CKV_AWS_117"), _BY_THE_CDK))
