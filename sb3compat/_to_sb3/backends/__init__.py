"""One module for each library whose vector environments need a partial reset of their own.

`partial_reset` imports a module here once the library itself has been imported, never before.
"""
