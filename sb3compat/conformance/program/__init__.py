"""Programs: statements that are run as they are written down, and the script they become."""
