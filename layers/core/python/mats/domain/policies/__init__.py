"""The additions to the paper's pipeline, one module each: docs/decisions/0105. `bootstrap/policies.py` lists them."""
