"""Running checks: the search for a failing program, the processes, the results."""
