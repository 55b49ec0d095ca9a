"""git's error messages, and the reasons that are shown for them."""

from __future__ import annotations

from tests.support.for_each import each_case
from torchbuild_tasks.system.git.transfer import Kind, Reason, advice, find_reason

URL = "https://github.com/pytorch/pytorch.git"


@each_case(
    ("line", "kind", "again"),
    [
        ("fatal: unable to access 'https://x/': Could not resolve host: x", "unreachable", True),
        ("fatal: unable to access 'https://x/': Failed to connect to x port 443", "unreachable", True),
        ("fatal: unable to look up nohost (port 9418) (Name or service not known)", "unreachable", True),
        ("error: RPC failed; curl 28 Operation too slow. Less than 10 bytes/sec", "stalled", True),
        ("nothing was heard for 60 seconds", "stalled", True),
        ("fatal: couldn't find remote ref refs/tags/v9", "missing", False),
        ("error: Server does not allow request for unadvertised object 0123", "missing", False),
        ("fatal: remote error: upload-pack: not our ref 0123", "missing", False),
        ("fatal: repository 'https://github.com/a/b/' not found", "missing", False),
        (
            "fatal: could not read Username for 'https://github.com': terminal prompts disabled",
            "denied",
            False,
        ),
        ("fatal: write error: No space left on device", "full", False),
        ("fatal: sha1 file 'x/tmp_idx_a' write error. Out of diskspace", "full", False),
        ("error: unable to create file a/b: Filename too long", "long", False),
        ("fatal: detected dubious ownership in repository at '/x'", "owner", False),
        ("fatal: early EOF", "other", True),
    ],
)
def test_reasons(line: str, kind: Kind, again: bool) -> None:
    found = find_reason(("Cloning …", line, "fatal: the remote end hung up unexpectedly"))
    assert (found.kind, found.line, found.again) == (kind, line, again)


def test_a_git_without_output() -> None:
    assert find_reason(()).line == "git said nothing"


def test_the_mirror_hint_comes_for_hosts_that_cannot_be_reached_and_for_nothing_else() -> None:
    unreachable = advice([Reason(kind="unreachable", line="")], URL)
    assert '[mirrors]\n"https://github.com/" = "https://MIRROR/"' in unreachable
    assert "[mirrors]" not in advice([Reason(kind="full", line="")], URL)
    assert (
        advice([Reason(kind="other", line="")], URL) == "Run the same command again: what was fetched stays."
    )
