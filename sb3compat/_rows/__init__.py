"""A set of rows, whoever steps them: the commands on a row, and its sub-environments."""
