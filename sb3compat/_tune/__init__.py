"""`sb3compat tune`: which way of making a vector environment is the fastest, here and now."""
