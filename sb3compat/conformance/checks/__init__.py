"""The checks, by family and group; `contract.checks_of` lists them."""
