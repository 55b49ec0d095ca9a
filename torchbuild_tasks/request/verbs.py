"""The verbs, the words that some of them take, and the choices of flags."""

from __future__ import annotations

from typing import Final

VERBS: Final = (
    *("doctor", "plan", "env", "build", "diagnose", "report", "clean", "verify"),
    *("helpers", "cache", "cluster", "versions", "builds"),
)
BUILDING: Final = ("doctor", "plan", "env", "build", "verify")
FETCHING: Final = (*BUILDING, "helpers")
CACHING: Final = (*BUILDING, "cache")
EVERY: Final = VERBS

# Verbs that take a word after them: `helpers fetch`.
ACTIONS: Final = {
    "helpers": ("list", "fetch", "where", "verify", "prune"),
    "cache": ("stats", "clear", "serve"),
    "cluster": ("scheduler", "server", "join", "status"),
    "builds": ("list", "show", "use", "remove", "diff"),
}
# Actions that take further words, the values of those fields: `cluster join http://host:10600`.
OBJECTS: Final = {
    ("cluster", "server"): ("scheduler",),
    ("cluster", "join"): ("scheduler",),
    ("builds", "show"): ("name",),
    ("builds", "use"): ("name",),
    ("builds", "remove"): ("name",),
    ("builds", "diff"): ("name", "second"),
}
# How such a word is written, for whoever left it out.
SAMPLES: Final = {"scheduler": "http://HOST:10600", "name": "NAME", "second": "OTHER"}
# The same, and those whose word can be anything: `diagnose build.log`.
WORDED: Final = (*ACTIONS, "diagnose")

PRESETS: Final = ("dev", "minimal", "full", "debug", "jetson")
BUILD_TYPES: Final = ("Release", "Debug", "RelWithDebInfo", "MinSizeRel")
MODES: Final = ("develop", "wheel")
JOBSERVER: Final = ("auto", "off")
SHELLS: Final = ("sh", "bat", "ps1", "fish", "all")
