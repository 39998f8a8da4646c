"""What is private in Python itself, and in cloudpickle."""

from __future__ import annotations

from sb3compat._upstream.table.entry import Kind, names

CPYTHON = (
    *names(
        "pickle",
        Kind.NAME,
        "_ipc/exceptions.py",
        {"_Unpickler": "exceptions whose class takes several arguments could not be read"},
    ),
    *names(
        "pickle:_Unpickler",
        Kind.ATTRIBUTE,
        "_ipc/exceptions.py",
        {
            "dispatch": "sb3compat's way to build exceptions would not be called",
            "load_reduce": "sb3compat's way to build exceptions would not be called",
            "load_build": "an exception that cannot take its attributes would not arrive",
            "find_class": "an exception of a class that only the worker has would not arrive",
            "stack": "sb3compat's way to build exceptions would not find their arguments",
        },
    ),
    *names(
        "multiprocessing.queues:Queue",
        Kind.ATTRIBUTE,
        "_ipc/exceptions.py",
        {
            "_rlock": "an exception could be read by two at once",
            "_reader": "an exception that never comes would be waited for: a hang",
            "_sem": "the queue would be full after some errors",
        },
    ),
    *names(
        "multiprocessing.connection:Connection._recv_bytes",
        Kind.CODE,
        "_ipc/framing.py",
        {
            'struct.unpack("!i", buf.getvalue())': "the size of an answer would be read wrongly",
            'struct.unpack("!Q", buf.getvalue())': "the size of an answer would be read wrongly",
        },
    ),
    *names(
        "cloudpickle.cloudpickle",
        Kind.NAME,
        "_ipc/by_value.py",
        {
            "_DYNAMIC_CLASS_TRACKER_BY_ID": "what workers answer would reset the user's classes",
            "_DYNAMIC_CLASS_TRACKER_BY_CLASS": "classes within classes would be a walk without end",
            "_get_or_create_tracker_id": "a fork would not know the classes of the main module",
            "_lookup_class_or_track": "a worker would have each class of the main module twice",
        },
    ),
    *names(
        "sys",
        Kind.NAME,
        "_ipc/worker_locals.py",
        {
            "_getframe": "a worker's local variables could not be read",
            "_current_frames": "a script that starts workers in a thread could run without end",
        },
    ),
    *names(
        "multiprocessing.process:BaseProcess.run",
        Kind.CODE,
        "_ipc/worker_locals.py",
        {
            "self._target(*self._args, **self._kwargs)": (
                "the end of a worker's own frames could not be found: its parent's would be read"
            )
        },
    ),
)
