"""The verbs, the words that some of them take, and the choices of flags."""

from __future__ import annotations

from typing import Final

VERBS: Final = (
    *("doctor", "bootstrap", "plan", "env", "build", "diagnose", "support", "report", "clean", "verify"),
    *("helpers", "cache", "cluster", "versions"),
    *("replay", "compare"),
)
BUILDING: Final = ("doctor", "bootstrap", "plan", "env", "build", "support", "verify")
PLANNING: Final = (*BUILDING, "replay")
FETCHING: Final = (*BUILDING, "helpers")
CACHING: Final = (*BUILDING, "cache")
EVERY: Final = VERBS

# Verbs that take a word after them: `helpers fetch`.
ACTIONS: Final = {
    "helpers": ("list", "fetch", "where", "verify", "prune"),
    "cache": ("stats", "clear", "serve"),
    "cluster": ("scheduler", "server", "join", "status"),
}
# Actions that take a further word, the value of that field: `cluster join http://host:10600`.
OBJECTS: Final = {("cluster", "server"): "scheduler", ("cluster", "join"): "scheduler"}
# Verbs whose words can be anything, each the value of a field: `diagnose build.log`.
WORDS: Final = {"diagnose": ("log",), "replay": ("manifest",), "compare": ("manifest", "other")}
WORDED: Final = (*ACTIONS, *WORDS)

PRESETS: Final = ("dev", "minimal", "full", "debug", "jetson")
BUILD_TYPES: Final = ("Release", "Debug", "RelWithDebInfo", "MinSizeRel")
MODES: Final = ("develop", "wheel")
MANAGERS: Final = ("apt", "dnf", "pacman", "zypper", "winget", "choco", "conda")
JOBSERVER: Final = ("auto", "off")
SHELLS: Final = ("sh", "bat", "ps1", "fish", "all")
