"""The real DynamoDB Local 2.6.1, in memory, on loopback only. Any credentials will do; all see the same tables."""

import argparse
from typing import Any

from tests.aws.deployment import Deployment
from tests.aws.jvm import JavaServer
from tests.aws.listening import serve


class DynamoDBLocal(JavaServer):
    """Streams work; their ARNs carry the region `ddblocal`."""

    name = "dynamodb"
    main = "DynamoDBLocal"


def make_tables(deployment: Deployment, client: Any) -> list[str]:
    """Make the tables of the templates, under their names there; empty ones, for what was there before is dropped."""
    there = set(client.list_tables()["TableNames"])
    names = []
    for table in deployment.all("AWS::DynamoDB::Table"):
        if table.ref in there:
            client.delete_table(TableName=table.ref)
        copied = ["KeySchema", "AttributeDefinitions", "GlobalSecondaryIndexes"]
        options = {name: table[name] for name in copied if name in table.raw}
        if stream := table.get("StreamSpecification"):
            options["StreamSpecification"] = {"StreamEnabled": True, **stream}
        client.create_table(TableName=table.ref, BillingMode="PAY_PER_REQUEST", **options)
        names.append(table.ref)
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    serve(DynamoDBLocal(port=parser.parse_args().port))


if __name__ == "__main__":
    main()
