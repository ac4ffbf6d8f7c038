"""What owners, operators and enrichment keep in an AWS account: tables of DynamoDB."""
