"""Language models behind an address that speaks OpenAI's chat completions, such as a model server on this machine."""
