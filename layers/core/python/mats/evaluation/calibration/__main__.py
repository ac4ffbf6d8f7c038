"""`python -m mats.evaluation.calibration`."""

from mats.evaluation.calibration.command import main

main()
