"""`python -m local.cli` is `mats`."""

from local.cli.main import main

main()
