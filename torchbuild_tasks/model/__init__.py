"""The values everything is made of: frozen, keyword-only, JSON both ways (`codec.py`).

Facts are what the machine is, a plan is what will be done and why (what was done
stands in `record.py`). Paths are strings in the style of the host that the facts describe, so a
plan for one machine can be made and tested on another. Sizes are bytes, times seconds.
"""

from torchbuild_tasks.model.machine import (
    FACTS_SCHEMA,
    CMakeCache,
    Cpu,
    Disk,
    Era,
    Facts,
    Host,
    Memory,
    Previous,
    Python,
    Store,
    Tool,
    Toolset,
    Tree,
    VisualStudio,
    Windows,
)
from torchbuild_tasks.model.plan import (
    Artifact,
    BuildPlan,
    Change,
    Choice,
    Command,
    EnvFile,
    Environment,
    EnvOp,
    Expectation,
    Finding,
    Freshness,
    Need,
    Source,
    Status,
)

__all__ = [
    "Artifact",
    "BuildPlan",
    "CMakeCache",
    "Change",
    "Choice",
    "Command",
    "Cpu",
    "Disk",
    "EnvFile",
    "EnvOp",
    "Environment",
    "Era",
    "Expectation",
    "FACTS_SCHEMA",
    "Facts",
    "Finding",
    "Freshness",
    "Host",
    "Memory",
    "Need",
    "Previous",
    "Python",
    "Source",
    "Status",
    "Store",
    "Tool",
    "Toolset",
    "Tree",
    "VisualStudio",
    "Windows",
]
