"""Measuring a registry: data sets, systems, measures, gate, calibration. Of all mats, only `mats.local` imports it."""
