"""Offline measurement. Of all mats, only `mats.local` imports it."""
