"""Amazon Bedrock through `bedrock-runtime`: Converse for the two LLM roles, InvokeModel for Titan's vectors."""
