"""What a Lambda function logs, counts and traces, by Powertools and X-Ray's daemon; only handlers import it."""
