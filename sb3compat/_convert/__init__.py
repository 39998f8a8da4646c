"""Conversions: pure functions and value types, without access to environments."""
