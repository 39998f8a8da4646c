"""What the checks of both interfaces share, and the checks that are the same for both.

What cannot tell anything raises a `NotExercisedError`: its message says why.
"""
