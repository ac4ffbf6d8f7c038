"""Calibration: fit the score scale and the verdict thresholds. `python -m mats.evaluation.calibration --help`."""
