"""Messages to worker processes: deadlines, dead workers, outstanding answers; their exceptions."""
