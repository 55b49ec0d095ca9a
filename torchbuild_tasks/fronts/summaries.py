"""What each verb does, in the order of the runners' lists. `nox -l` reads this and nothing of the flags."""

from __future__ import annotations

from typing import Final

SUMMARIES: Final = {
    "doctor": "Look at the machine and the checkout, and say what is wrong.",
    "bootstrap": "Print the package manager's commands for what is missing, or run them.",
    "plan": "Show every decision of a build with its reason; write nothing.",
    "env": "Write the env files of the plan.",
    "build": "Build, record and verify torch.",
    "diagnose": "Find the first real error of a log, its cause, and what to do about it.",
    "support": "Write one archive for somebody else to look at, without secrets.",
    "report": "Write the last build's timeline, slowest files and critical path as one HTML page.",
    "clean": "Remove what the build made, and nothing else.",
    "verify": "Hold the installed torch to what the plan promises.",
    "helpers": "List, fetch, find, verify or prune the libraries and tools that builds download.",
    "cache": "Tell how full the compiler caches are, empty them, or serve one for builds by hand.",
    "cluster": "Run a scheduler or a server of distributed compiles, join one, or say how they are.",
    "versions": "Show the torch versions and which of them fit this machine.",
    "builds": "List, show, enter, compare or remove the named builds of torchbuild.toml.",
    "replay": "Plan a recorded build again here, say what differs all the same; --yes builds it.",
    "compare": "Say what differs between the manifests of two builds.",
    "source": "Get, update, look at, mend or mirror a checkout of PyTorch.",
    "debug-config": "Write entries for VS Code's debuggers, link compile_commands.json, and check.",
    "test": "Run upstream's own tests with the built torch; words behind a -- of their own are passed on.",
    "bench": "Run upstream's operator benchmarks with the built torch; words behind a -- are passed on.",
    "bisect": "Find the commit that broke something: bisect --good REF --bad REF -- COMMAND.",
}
