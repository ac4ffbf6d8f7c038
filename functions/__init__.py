"""Entry points of the Lambda functions. Each converts events and calls the code that the local service calls."""
