"""The verbs, the words that some of them take, and the choices of flags."""

from __future__ import annotations

from typing import Final

VERBS: Final = (
    *("doctor", "bootstrap", "plan", "env", "build", "diagnose", "support", "report", "clean", "verify"),
    *("helpers", "cache", "cluster", "versions", "builds", "replay", "compare", "source"),
    *("debug-config", "test", "bench", "bisect"),
)
HOLDING: Final = ("doctor", "bootstrap", "plan", "env", "build", "support", "verify")
BUILDING: Final = (*HOLDING, "bisect")
PLANNING: Final = (*BUILDING, "replay")
FETCHING: Final = (*BUILDING, "helpers")
CACHING: Final = (*BUILDING, "cache")
EVERY: Final = VERBS

# Verbs that pass on the words behind a `--` of their own.
TRAILING: Final = ("test", "bench", "bisect")
# Verbs that take a word after them: `helpers fetch`.
ACTIONS: Final = {
    "helpers": ("list", "fetch", "where", "verify", "prune"),
    "cache": ("stats", "clear", "serve"),
    "cluster": ("scheduler", "server", "join", "status"),
    "builds": ("list", "show", "use", "remove", "diff"),
    "source": ("get", "update", "status", "reset", "mirror"),
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
# Actions after which a further word may stand, unless it is a verb: `source get 2.9.1`.
MAYBE: Final = {("source", action): "ref" for action in ("get", "update", "mirror")}
# Verbs that take words, the values of those fields, and no action: `diagnose build.log`.
WORDS: Final = {"diagnose": ("log",), "replay": ("manifest",), "compare": ("manifest", "other")}
# What such a word is, and how it is written, for whoever left it out.
SAMPLES: Final = {
    "scheduler": ("scheduler", "http://HOST:10600"),
    "name": ("build", "NAME"),
    "second": ("other build", "OTHER"),
    "log": ("log", "LOG"),
    "manifest": ("manifest", "MANIFEST"),
    "other": ("other manifest", "OTHER"),
}
WORDED: Final = (*ACTIONS, *WORDS)

PRESETS: Final = ("dev", "minimal", "full", "debug", "jetson")
BUILD_TYPES: Final = ("Release", "Debug", "RelWithDebInfo", "MinSizeRel")
MODES: Final = ("develop", "wheel")
MANAGERS: Final = ("apt", "dnf", "pacman", "zypper", "winget", "choco", "conda")
JOBSERVER: Final = ("auto", "off")
SHELLS: Final = ("sh", "bat", "ps1", "fish", "all")
