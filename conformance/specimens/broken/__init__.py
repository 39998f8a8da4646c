"""Environments that break one contract each, as small changes of correct ones."""
