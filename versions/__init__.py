"""The suite on every pair of versions that sb3compat supports: `make pairs`. Not packaged."""
