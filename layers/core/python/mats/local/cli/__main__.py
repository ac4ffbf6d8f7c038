"""`python -m mats.local.cli`: the same as `mats`."""

from mats.local.cli import main

main()
