"""The environment under test: its interface, its capabilities, how its episodes end."""
