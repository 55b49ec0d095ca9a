"""What every verb starts from: the request checked, the settings read, the machine looked at, the plan.

`flow.py` is the verbs; this is what they share.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torchbuild_tasks import codec, version
from torchbuild_tasks.catalog import Catalog, load_catalog
from torchbuild_tasks.core.cluster.address import file_name, scheduler_url
from torchbuild_tasks.core.cuda.wanted import may_be_cuda
from torchbuild_tasks.core.linker import left_out
from torchbuild_tasks.core.plan import make_plan
from torchbuild_tasks.core.settings import Settings, check_settings, check_value, split_assignment
from torchbuild_tasks.effects import files
from torchbuild_tasks.effects.cluster import keep
from torchbuild_tasks.effects.cluster.look import look_at_cluster
from torchbuild_tasks.effects.fetch.net import Net, read_mirrors
from torchbuild_tasks.errors import PlanRefused, UsageError
from torchbuild_tasks.facts.gather import gather
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.settings import find_settings
from torchbuild_tasks.model import BuildPlan, Cluster, Facts
from torchbuild_tasks.request import BuildRequest
from torchbuild_tasks.stages import Fetching, Reporter
from torchbuild_tasks.stages.linker import try_linker
from torchbuild_tasks.templates import load_templates

# Seconds that the doctor waits for a program. Compilers and the like say their version in hundredths;
# a build, which has to be right about a machine that just woke up, waits for longer.
PATIENCE: Final = 3.0
SUPPORT_FACTS: Final = "facts.json"  # in the archive of `support`
if TYPE_CHECKING:
    from torchbuild_tasks.manifest import Manifest


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sight:
    """What every verb starts from: the request, the settings file, the rows and the facts."""

    request: BuildRequest
    settings: Settings
    catalog: Catalog
    facts: Facts


def look(
    request: BuildRequest,
    settings: Settings | None = None,
    *,
    everything: bool = True,
    patience: float = math.inf,
) -> Sight:
    """Check the request, read the settings file, load the rows, look at the machine.

    Args:
        request: the flags.
        settings: taken instead of those of a file.
        everything: without it, nobody looks for what the request has no use for.
        patience: no program is waited for longer, seconds.
    """
    check_request(request)
    if settings is None:
        found = find_settings(request.config, request.source or ".")
        settings = check_settings(found.path, found.data, found.lines) if found else Settings()
    catalog = load_catalog()
    if settings.failures:  # the user's own stand before ours
        catalog = Catalog(failure=(*settings.failures, *catalog.failure))
    if request.facts:
        return Sight(
            request=request, settings=settings, catalog=catalog, facts=read_facts(Path(request.facts))
        )
    source = request.source or settings.values.get("source") or "."
    facts = gather(
        source=str(Path(source).expanduser().resolve()),
        python=request.python or settings.values.get("python"),
        cuda=everything or may_be_cuda(request, settings, os.environ, catalog),
        cuda_toolkit=request.cuda_toolkit or settings.values.get("cuda_toolkit"),
        patterns=tuple(row.name for row in catalog.variable),
        front_end=tuple(row.path for row in catalog.front_end if row.role == "reads"),
        tags=bool(request.torch or settings.values.get("torch")),
        probe=Probe(environ=dict(os.environ), patience=patience),
    )
    if scheduler := request.distribute or settings.values.get("distribute"):
        facts = dataclasses.replace(facts, cluster=_ask_scheduler(str(scheduler), facts))
    return Sight(request=request, settings=settings, catalog=catalog, facts=facts)


def examined(sight: Sight, made_plan: BuildPlan) -> Sight:
    """The same with what only the doctor looks at: the surroundings, and the hosts that the plan needs."""
    from concurrent.futures import ThreadPoolExecutor

    from torchbuild_tasks.facts.health.look import look_at_health
    from torchbuild_tasks.facts.health.rooms import temporary
    from torchbuild_tasks.stages.doctor import ask_hosts, proxies, written_places

    facts, net = sight.facts, network(sight).net
    probe = Probe(environ=dict(os.environ), patience=PATIENCE)
    patterns = tuple(row.name for row in sight.catalog.variable)
    with ThreadPoolExecutor(max_workers=1) as pool:
        answers = pool.submit(ask_hosts, made_plan, facts, net)
        places = written_places(made_plan, facts, temporary(probe))
        health = look_at_health(probe, facts, places, patterns, made_plan.build_dir)
        health = dataclasses.replace(health, reached=answers.result(), offline=net.offline, proxies=proxies())
    cut = tuple(sorted({*facts.cut, *probe.cut}))
    return dataclasses.replace(sight, facts=dataclasses.replace(facts, cut=cut, health=health))


def look_again(request: BuildRequest, manifest: Manifest, source: str) -> tuple[Sight, BuildPlan]:
    """What a recorded build starts from, here and now, and its plan brought as near to that one as can be."""
    from torchbuild_tasks.core.manifest.replay import pinned, pins, request_of, settings_of

    sight = look(request_of(manifest, request, source), settings_of(manifest))
    sight = dataclasses.replace(sight, facts=pinned(sight.facts, manifest))
    made_plan = decide(sight)
    if more := pins(manifest, made_plan, sight.facts):
        asked = dataclasses.replace(sight.request, set=(*sight.request.set, *more))
        sight = dataclasses.replace(sight, request=asked)
        made_plan = decide(sight)
    return sight, made_plan


def our_shelf(facts: Facts) -> keep.Shelf:
    """Where this user's files of clusters are."""
    return keep.shelf(facts.store.folder if facts.store else str(Path(facts.tree.root) / files.STATE_DIR))


def _ask_scheduler(text: str, facts: Facts) -> Cluster:
    url = scheduler_url(text)
    return look_at_cluster(url, our_shelf(facts).client(file_name(url)))


def network(sight: Sight) -> Fetching:
    """How helpers are fetched in this run: flag, else environment, else torchbuild.toml."""
    values, store = sight.settings.values, sight.facts.store
    mirror = sight.request.mirror or os.environ.get("TORCHBUILD_MIRROR") or values.get("mirror")
    root = Path(sight.facts.tree.root)
    return Fetching(
        store=Path(store.folder) if store else root / files.STATE_DIR / "store",
        lock_file=root / "torchbuild.lock",
        net=Net(
            mirrors=read_mirrors(mirror) if mirror else (),
            offline=sight.request.offline or bool(values.get("offline")),
        ),
        require_hashes=sight.request.require_hashes or bool(values.get("require_hashes")),
    )


def cache_words(sight: Sight) -> str:
    """What --cache says, with the passwords that neither plan nor record hold."""
    return str(sight.request.cache or sight.settings.values.get("cache") or "")


def checkout(sight: Sight) -> str:
    """The checkout's folder.

    Raises:
        UsageError: there is no PyTorch in it.
    """
    tree = sight.facts.tree
    if tree.problem:
        raise UsageError(f"{tree.root}: {tree.problem}", next_step="Name the checkout: --source PATH")
    return tree.root


def check_request(request: BuildRequest) -> None:
    """Refuse values that no machine can make right.

    Raises:
        UsageError: a value is none of its choices, a job count is below 1, a --set is no KEY=VALUE.
    """
    for field in dataclasses.fields(request):
        check_value(field.name, getattr(request, field.name))
    for assignment in request.set:
        split_assignment(assignment)


def read_facts(path: Path) -> Facts:
    """Read a `doctor --json` dump, whole or its facts alone, or the archive of `support`.

    Raises:
        UsageError: no such file, no JSON, or not such a dump.
    """
    try:
        data: Any = json.loads(_dump(path).decode("utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}", next_step="Make one with: doctor --json") from None
    return codec.decode(Facts, data.get("facts", data) if isinstance(data, dict) else data, "facts")


def _dump(path: Path) -> bytes:
    """The bytes of a dump; of an archive those of its facts."""
    data = path.read_bytes()
    if not data.startswith(b"PK"):
        return data
    import io
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.read(SUPPORT_FACTS)
    except (zipfile.BadZipFile, KeyError):
        raise UsageError(
            f"{path} is no archive of `support` with facts in it", next_step="Make one with: support"
        ) from None


def bare(request: BuildRequest) -> Sight:
    """The machine and the checkout alone, where the settings or the flags cannot be understood."""
    root = str(Path(request.source or ".").expanduser().resolve())
    catalog = load_catalog()
    patterns = tuple(row.name for row in catalog.variable)
    probe = Probe(environ=dict(os.environ), patience=PATIENCE)
    facts = gather(source=root, python=None, patterns=patterns, probe=probe)
    return Sight(
        request=BuildRequest(source=request.source, out=request.out, offline=True),
        settings=Settings(),
        catalog=catalog,
        facts=facts,
    )


def is_administrator() -> bool:
    """Whether this process may change the system."""
    return Probe(environ=os.environ).administrator() is True


def writer() -> str:
    """The name and version of this tool, as it stands in what it writes."""
    return f"torchbuild_tasks {version()}"


def decide(sight: Sight) -> BuildPlan:
    """The plan of what was seen; its verdict may be refuse."""
    templates = {shell: template.text for shell, template in load_templates(Path.cwd()).items()}
    return make_plan(
        sight.request,
        sight.facts,
        sight.catalog,
        settings=sight.settings,
        templates=templates,
        writer=writer(),
    )


def settled(sight: Sight, made_plan: BuildPlan, report: Reporter) -> BuildPlan:
    """The plan with a linker that links here: the planned one is tried, and left out if it does not."""
    while made_plan.linker and (reason := try_linker(made_plan, report)):
        sight = dataclasses.replace(sight, catalog=left_out(sight.catalog, made_plan.linker, reason))
        made_plan = accepted(decide(sight))
    return made_plan


def accepted(made_plan: BuildPlan) -> BuildPlan:
    """The plan itself, when it can work.

    Raises:
        PlanRefused: a finding is an error; all that are stand in it.
    """
    if made_plan.verdict != "refuse":
        return made_plan
    errors = [finding for finding in made_plan.findings if finding.status == "error"]
    reasons = "one reason" if len(errors) == 1 else f"{len(errors)} reasons"
    raise PlanRefused(
        f"This build cannot work, for {reasons}. Nothing was written.",
        findings=tuple(errors),
    )
