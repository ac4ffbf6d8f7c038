"""The real DynamoDB Local 2.6.1, in memory, on loopback only. Any credentials will do; all see the same tables."""

import argparse

from tests.servers.jvm import JavaServer, serve


class DynamoDBLocal(JavaServer):
    """Streams work; their ARNs carry the region `ddblocal`."""

    name = "dynamodb"
    main = "DynamoDBLocal"


def main() -> None:
    """Run one by hand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    serve(DynamoDBLocal(port=parser.parse_args().port))


if __name__ == "__main__":
    main()
