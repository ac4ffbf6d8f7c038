"""`python -m mats.local.cli` is `mats`."""

from mats.local.cli.main import main

main()
