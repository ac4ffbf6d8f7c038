"""Synthesized CloudFormation templates, read as if they were deployed: every reference resolved to a name or an ARN."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

REGION = "us-east-1"
ACCOUNT = "123456789012"

# How the ARN and the Ref of a resource come from its name, and which property names it.
_KINDS: dict[str, tuple[str, str | None]] = {
    "AWS::ApiGateway::RestApi": ("apigateway:{region}::/restapis/{name}", None),
    "AWS::DynamoDB::Table": ("dynamodb:{region}:{account}:table/{name}", "TableName"),
    "AWS::DynamoDB::GlobalTable": ("dynamodb:{region}:{account}:table/{name}", "TableName"),
    "AWS::Events::EventBus": ("events:{region}:{account}:event-bus/{name}", "Name"),
    "AWS::Events::Rule": ("events:{region}:{account}:rule/{name}", "Name"),
    "AWS::IAM::Role": ("iam::{account}:role/{name}", "RoleName"),
    "AWS::KMS::Key": ("kms:{region}:{account}:key/{name}", None),
    "AWS::Lambda::Alias": ("lambda:{region}:{account}:function:{name}", None),
    "AWS::Lambda::Function": ("lambda:{region}:{account}:function:{name}", "FunctionName"),
    "AWS::Lambda::LayerVersion": ("lambda:{region}:{account}:layer:{name}:1", None),
    "AWS::Lambda::Version": ("lambda:{region}:{account}:function:{name}:1", None),
    "AWS::Logs::LogGroup": ("logs:{region}:{account}:log-group:{name}:*", "LogGroupName"),
    "AWS::OpenSearchService::Domain": ("es:{region}:{account}:domain/{name}", "DomainName"),
    "AWS::SNS::Topic": ("sns:{region}:{account}:{name}", "TopicName"),
    "AWS::StepFunctions::StateMachine": ("states:{region}:{account}:stateMachine:{name}", "StateMachineName"),
    "AWS::SQS::Queue": ("sqs:{region}:{account}:{name}", "QueueName"),
}
_ARN_IS_REF = {
    "AWS::Lambda::Alias", "AWS::Lambda::LayerVersion", "AWS::Lambda::Version", "AWS::SNS::Topic",
    "AWS::StepFunctions::StateMachine",
}  # fmt: skip


class Misconfigured(Exception):
    """The templates would not work in an account either."""


class Unresolvable(Misconfigured):
    """The template refers to something that is not there, or in a way this stand-in does not know."""


@dataclass(frozen=True)
class Resource:
    """One resource of one stack; its properties are resolved when they are asked for."""

    id: str
    type: str
    stack: int
    deployment: "Deployment"
    raw: Json

    def __getitem__(self, name: str) -> Any:
        """The property, resolved; KeyError when the template does not have it."""
        return self.deployment.resolve(self.raw[name], self.stack)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self.raw else default

    @property
    def ref(self) -> str:
        return str(self.deployment.resolve({"Ref": self.id}, self.stack))

    @property
    def arn(self) -> str:
        """The value of `Fn::GetAtt Arn`."""
        return str(self.deployment.resolve({"Fn::GetAtt": [self.id, "Arn"]}, self.stack))


class Deployment:
    """All stacks of an app. `values` overrides what a reference gives: {"Domain.DomainEndpoint": "127.0.0.1:9200"}.

    A resource without a name of its own is called by its logical id, so that a table's name in DynamoDB Local is known.
    """

    def __init__(
        self,
        *templates: Json,
        values: Mapping[str, str] | None = None,
        region: str = REGION,
        account: str = ACCOUNT,
    ) -> None:
        self.region, self.account = region, account
        self._partition = "aws-us-gov" if region.startswith("us-gov-") else "aws"
        self._templates, self._values = templates, dict(values or {})

    def all(self, type: str) -> list[Resource]:
        """The resources of this type, in the order of the templates."""
        return [
            Resource(id, type, stack, self, resource.get("Properties", {}))
            for stack, template in enumerate(self._templates)
            for id, resource in template.get("Resources", {}).items()
            if resource["Type"] == type
        ]

    def one(self, type: str, containing: str = "") -> Resource:
        """The only resource of this type whose logical id contains these letters (in any case)."""
        found = [resource for resource in self.all(type) if containing.lower() in resource.id.lower()]
        if len(found) != 1:
            raise Unresolvable(f"{len(found)} resources of type {type} with {containing!r} in their id, not one")
        return found[0]

    def at(self, arn: str) -> Resource:
        for type in _KINDS:
            for resource in self.all(type):
                if resource.arn == arn:
                    return resource
        raise Unresolvable(f"no resource in the templates has the ARN {arn}")

    def resolve(self, value: Any, stack: int = 0) -> Any:
        """The value without intrinsic functions.

        Raises:
            Unresolvable: a reference to nothing, or an intrinsic function that is not known here.
        """
        if isinstance(value, list):
            resolved = [self.resolve(each, stack) for each in value]
            return [each for each in resolved if each is not None]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            name, argument = next(iter(value.items()))
            if name == "Ref" or name.startswith("Fn::"):
                return self._intrinsic(name, argument, stack)
        resolved_fields = {key: self.resolve(each, stack) for key, each in value.items()}
        return {key: each for key, each in resolved_fields.items() if each is not None}

    def _intrinsic(self, name: str, argument: Any, stack: int) -> Any:  # noqa: PLR0911  one case each
        match name:
            case "Ref":
                return self._ref(argument, stack)
            case "Fn::GetAtt":
                id, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
                return self._attribute(id, attribute, stack)
            case "Fn::Join":
                separator, parts = argument
                return separator.join(str(part) for part in self.resolve(parts, stack))
            case "Fn::Sub":
                return self._sub(argument, stack)
            case "Fn::Select":
                index, choices = argument
                return self.resolve(choices, stack)[int(index)]
            case "Fn::Split":
                separator, text = argument
                return self.resolve(text, stack).split(separator)
            case "Fn::ImportValue":
                return self._imported(self.resolve(argument, stack))
            case "Fn::FindInMap":
                return self._mapped(*self.resolve(argument, stack), stack)
            case "Fn::If":
                condition, yes, no = argument
                return self.resolve(yes if self._holds(condition, stack) else no, stack)
            case "Fn::Equals":
                one, other = self.resolve(argument, stack)
                return one == other
        raise Unresolvable(f"{name} is not known here")

    def _mapped(self, mapping: str, row: str, column: str, stack: int) -> Any:
        try:
            return self._templates[stack]["Mappings"][mapping][row][column]
        except KeyError as missing:
            raise Unresolvable(f"the mapping {mapping} has no {missing}: CloudFormation refuses the stack") from missing

    def _holds(self, condition: str, stack: int) -> bool:
        return bool(self.resolve(self._templates[stack]["Conditions"][condition], stack))

    def _ref(self, id: str, stack: int) -> Any:
        pseudo = {
            "AWS::Region": self.region,
            "AWS::AccountId": self.account,
            "AWS::Partition": self._partition,
            "AWS::URLSuffix": "amazonaws.com",
            "AWS::StackName": f"stack-{stack}",
            "AWS::StackId": f"arn:aws:cloudformation:{self.region}:{self.account}:stack/stack-{stack}/0",
            "AWS::NoValue": None,
        }
        if id in self._values:
            return self._values[id]
        if id in pseudo:
            return pseudo[id]
        parameter = self._templates[stack].get("Parameters", {}).get(id)
        if parameter is not None and "Default" in parameter:
            return parameter["Default"]
        type = self._type(id, stack)
        if type in _ARN_IS_REF:
            return self._attribute(id, "Arn", stack)
        name = self._name(id, stack)
        return f"https://sqs.{self.region}.amazonaws.com/{self.account}/{name}" if type == "AWS::SQS::Queue" else name

    def _attribute(self, id: str, attribute: str, stack: int) -> str:
        if (key := f"{id}.{attribute}") in self._values:
            return self._values[key]
        type, name = self._type(id, stack), self._name(id, stack)
        if type not in _KINDS:
            raise Unresolvable(f"{key}: say in `values` what it is")
        arn = f"arn:{self._partition}:" + _KINDS[type][0].format(region=self.region, account=self.account, name=name)
        match attribute:
            case "Arn" | "DomainArn" | "TopicArn":
                return arn
            case "StreamArn":
                return f"{arn}/stream/2026-01-01T00:00:00.000"
            case "QueueName" | "Name":
                return name
            case "QueueUrl":
                return str(self._ref(id, stack))
            case "DomainEndpoint":
                return f"search-{name.lower()}.{self.region}.es.amazonaws.com"
        raise Unresolvable(f"{key}: say in `values` what it is")

    def _name(self, id: str, stack: int) -> str:
        properties = self._templates[stack]["Resources"][id].get("Properties", {})
        type = self._type(id, stack)
        if type == "AWS::Lambda::Alias":
            return f"{self.resolve(properties['FunctionName'], stack)}:{properties['Name']}"
        naming = _KINDS.get(type, ("", None))[1]
        if naming and naming in properties:
            return str(self.resolve(properties[naming], stack))
        alike = sum(id in template["Resources"] for template in self._templates)
        return id if alike == 1 else f"{id}-{stack}"

    def _type(self, id: str, stack: int) -> str:
        try:
            return str(self._templates[stack]["Resources"][id]["Type"])
        except KeyError:
            raise Unresolvable(f"no resource or parameter {id!r} in stack {stack}") from None

    def _sub(self, argument: Any, stack: int) -> str:
        text, own = (argument, {}) if isinstance(argument, str) else argument

        def value(found: re.Match[str]) -> str:
            name = found[1]
            if name.startswith("!"):
                return f"${{{name[1:]}}}"
            if name in own:
                return str(self.resolve(own[name], stack))
            return str(self._intrinsic("Fn::GetAtt" if "." in name else "Ref", name, stack))

        return re.sub(r"\$\{([^}]+)\}", value, text)

    def _imported(self, name: str) -> Any:
        for stack, template in enumerate(self._templates):
            for output in template.get("Outputs", {}).values():
                if "Export" in output and self.resolve(output["Export"]["Name"], stack) == name:
                    return self.resolve(output["Value"], stack)
        raise Unresolvable(f"no stack exports {name!r}")


def texts(value: str | Sequence[str]) -> list[str]:
    """A list, where IAM and CloudFormation allow a single text for a list of one."""
    return [value] if isinstance(value, str) else list(value)
