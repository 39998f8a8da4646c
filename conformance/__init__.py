"""The kit run on the world; not packaged."""
