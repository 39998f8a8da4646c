"""Conversions: pure functions and value types that know no environment."""
