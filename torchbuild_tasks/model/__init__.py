"""The values of facts, plans and records: frozen, keyword-only, convertible to and from JSON (`values.py`).

Facts describe the machine, a plan the decisions with their reasons (`model/record.py` has the results).
Paths are strings in the style of the host of the facts, so that a plan for one machine can be made and
tested on another. Sizes are bytes, times seconds.
"""

from torchbuild_tasks.model.cuda import Cuda, Driver, GpuSeen, Library, Tegra, Toolkit
from torchbuild_tasks.model.diagnosis import Diagnosis, Reading
from torchbuild_tasks.model.facts import (
    FACTS_SCHEMA,
    Brought,
    Cluster,
    CMakeCache,
    CompanionSource,
    Cpu,
    Disk,
    Era,
    Facts,
    Health,
    Host,
    Memory,
    OtherTree,
    OwnPatch,
    Previous,
    Python,
    Reached,
    Room,
    Running,
    Store,
    Switch,
    Tool,
    Toolset,
    Tree,
    TreeReads,
    VisualStudio,
    Windows,
)
from torchbuild_tasks.model.plan import (
    Artifact,
    BuildPlan,
    CachePlan,
    CacheReport,
    CacheState,
    CacheTool,
    Change,
    Choice,
    Command,
    Companion,
    Distribution,
    EnvFile,
    Environment,
    EnvOp,
    Expectation,
    Finding,
    Freshness,
    Jobserver,
    LinkerPlan,
    LinkTrial,
    ManagedToolkit,
    Need,
    Patch,
    Preflight,
    Source,
    Status,
    Trial,
    Way,
    verdict,
)
