"""One module for each library whose vector environments need a partial reset of their own.

`partial_reset` imports a module here for an environment of that library, and takes its `ResetRows`.
"""
