"""The questions that the child answers."""

from __future__ import annotations

from sb3compat.conformance.checks.catalogue import find_check
from sb3compat.conformance.run.options import Options
from sb3compat.conformance.run.places import given_by
from sb3compat.conformance.run.server import Server
from sb3compat.conformance.subject.settings import Settings
from tests.conformance.tiny import FloatDones

BOOL = find_check("vec_env", "dones_bool_array")


def test_a_server_examines_scouts_and_runs() -> None:
    server = Server()
    assert server.look_at(given_by(Options(), FloatDones, None)).endings == ()
    assert not server.try_out().capabilities["sub_envs"]
    server.release()
    assert server.scout(5.0).endings[0].steps == 3
    result = server.run(BOOL, Settings())
    assert result.status == "failed"
    lines = ["env = make_env()", "obs = env.reset()"]
    assert [m.event for m in server.timeline(lines, Settings())] == ["reset", "reset"]


def test_a_new_server_adopts_what_another_found() -> None:
    first, second = Server(), Server()
    first.look_at(given_by(Options(), FloatDones, None))
    second.adopt(first.scout(5.0))
    assert second.run(BOOL, Settings()).status == "failed"
