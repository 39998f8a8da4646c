"""Conversions: pure functions and value types, no environment in sight."""
