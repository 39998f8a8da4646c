"""The checks: a folder for each interface, a module for each subject; `catalogue` lists them.

A new check is a function in one of these modules, registered by `error` or `warning` of `tools`
next to it, and a mutant in `conformance/specimens/broken/` that no other check fails.
"""
