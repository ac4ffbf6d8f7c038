"""Fit the constants of the score scale and the verdict to judged data sets (`make calibrate`)."""
