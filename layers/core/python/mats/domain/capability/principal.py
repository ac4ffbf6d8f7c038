"""IAM principals by their ARN."""

import re

_SESSION = re.compile(r"arn:(?P<partition>[\w-]+):sts::(?P<account>\d+):assumed-role/(?P<role>[^/]+)(?:/.*)?")
_ROLE = re.compile(r"arn:(?P<partition>[\w-]+):iam::(?P<account>\d+):role/(?:.*/)?(?P<role>[^/]+)")


def principal(arn: str) -> str:
    """The ARN of a role without its path, for the role's own ARN or a session's; any other ARN as it is.

    A session's ARN lacks the path of its role. The name alone identifies the role: IAM's role names are unique in an
    account, whatever their paths.
    """
    found = _SESSION.fullmatch(arn) or _ROLE.fullmatch(arn)
    return f"arn:{found['partition']}:iam::{found['account']}:role/{found['role']}" if found else arn
