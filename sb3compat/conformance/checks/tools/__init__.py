"""What the checks of both interfaces share."""
