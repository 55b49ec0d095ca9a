"""What a build does with a scheduler before sccache's server is started."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from torchbuild_tasks.features.cluster.act import Client
from torchbuild_tasks.model import Distribution


@pytest.mark.integration
def test_a_scheduler_that_has_gone_since_the_plan_is_one_warning(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    conf = str(tmp_path / "client.conf")
    client = Client(Distribution(url=url, conf=conf, compiler="/usr/bin/g++", jobs=4))
    notes: list[str] = []
    assert client.server_settings(tmp_path, notes.append) == {}
    (note,) = notes
    assert note.startswith("Warning: everything is compiled here.") and url in note
