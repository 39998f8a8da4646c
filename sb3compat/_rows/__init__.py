"""Access to the rows of a vector environment: commands on a row, and its sub-environment."""
