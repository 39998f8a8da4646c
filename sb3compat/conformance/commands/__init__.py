"""What the command line and the pytest plugin do: name a target, run, list, explain, replay."""
