"""The checks: a folder for each interface, a module for each subject; `catalogue` lists them.

A new check is a function in one of these modules, registered by its `error` or `warning`,
and a mutant in `conformance/specimens/broken/` that no other check fails. A function of `tools`
that is the same check for both interfaces is registered in a module of each.
"""
