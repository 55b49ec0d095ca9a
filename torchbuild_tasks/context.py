"""Prepare every verb: read the settings, look at the machine, make the plan."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torchbuild_tasks.about import __version__
from torchbuild_tasks.catalog import Catalog, load_catalog
from torchbuild_tasks.catalog.templates import load_templates
from torchbuild_tasks.errors import PlanRefused, TorchbuildError, UsageError
from torchbuild_tasks.facts.answers import Answers
from torchbuild_tasks.facts.gather import gather
from torchbuild_tasks.facts.machine import own_names
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.settings import find_settings, find_user_settings
from torchbuild_tasks.facts.store import look_at_brought, store_folder
from torchbuild_tasks.facts.tree import (
    look_at_commit_time,
    look_at_patches,
    look_at_running,
    look_at_tree,
    patch_folders,
)
from torchbuild_tasks.facts.trust import TEMPLATES, is_trusted, own_templates, place_of
from torchbuild_tasks.features.builds.named_build import Named, config_of, note_of, read_default, resolve
from torchbuild_tasks.features.cache.address import is_reapi
from torchbuild_tasks.features.cluster.choose import file_name, scheduler_url
from torchbuild_tasks.flag_values import check_request, check_texts, set_stale_aside
from torchbuild_tasks.model import FACTS_SCHEMA, BuildPlan, Cluster, Facts, Running
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.linker import refuse_linker
from torchbuild_tasks.plan.make import make_plan
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.settings import (
    Settings,
    Withheld,
    check_settings,
    flag_or_setting,
    split_assignment,
)
from torchbuild_tasks.plan.submodules import Needs
from torchbuild_tasks.plan.trust import withhold, without_given
from torchbuild_tasks.plan.variables import layers_around_environment, may_be_cuda
from torchbuild_tasks.system import files
from torchbuild_tasks.system.reading import read_bytes
from torchbuild_tasks.system.signals import interruptible
from torchbuild_tasks.values import from_json, parse_json, replace

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Fetching, Reporter
    from torchbuild_tasks.features.cluster.ask import ClusterFiles

SUPPORT_FACTS: Final = "facts.json"  # in the archive of `support`


def read_facts(path: Path) -> Facts:
    """Read a `doctor --json` dump, complete or only its facts, or the archive of `support`.

    Raises:
        UsageError: no such file, no JSON, or not such a dump.
    """
    try:
        data: Any = parse_json(_dump(path))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}", next_step="Make one with: doctor --json") from None
    data = data.get("facts", data) if isinstance(data, dict) else data
    schema = data.get("schema") if isinstance(data, dict) else None
    if isinstance(schema, int) and schema > FACTS_SCHEMA:
        raise UsageError(
            f"{path} has facts of schema {schema}, from a newer version; this one reads {FACTS_SCHEMA}",
            next_step="Update this one, or make the dump with its version: doctor --json",
        )
    return from_json(Facts, data, "facts")


def _dump(path: Path) -> bytes:
    """Return the bytes of a dump; of an archive those of its facts."""
    data = read_bytes(path)
    if not data.startswith(b"PK"):
        return data
    import io
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.read(SUPPORT_FACTS)
    except (zipfile.BadZipFile, KeyError):
        raise UsageError(
            f"{path} is not an archive of `support` with facts in it", next_step="Make one with: support"
        ) from None


# ---------------- which of the named builds a request is about, and its worktree


def read_named_build(request: BuildRequest, settings: Settings | None = None) -> Named:
    """Read the settings file; --name, or the current worktree, selects one of its builds.

    `settings` are taken instead of those of a file, and then no build is named.
    """
    if settings is not None:
        return Named(settings=settings, main=Path(request.source or "."))
    found = resolve(request, note_of(request), read_trusted_settings(request))
    return replace(found, settings=found.settings.without(request.denied_by_environment))


def take_default(request: BuildRequest, say: Callable[[str], None]) -> BuildRequest:
    """Return the request with the default build of its checkout (`builds use`), and report it.

    Raises:
        UsageError: torchbuild.toml has no such build any more.
    """
    if request.name or request.facts or note_of(request):
        return request
    about = read_named_build(request)
    name = read_default(about.main) if about.settings.builds or about.settings.path else None
    if name is None:
        return request
    if name not in about.settings.builds:
        raise UsageError(
            f"The default of {about.main} is the build {name}, which {about.settings.path} does not have.",
            next_step="Take another, or none: torchbuild builds use NAME, or: torchbuild builds use none",
        )
    say(f"using the build {name}, as `builds use` chose; --name none uses the checkout itself")
    return dataclasses.replace(request, name=name)


def who_works(request: BuildRequest) -> Running | None:
    """Return the command that works on the checkout of a request now."""
    with contextlib.suppress(TorchbuildError):
        about = read_named_build(request)
        return look_at_running(Probe(), str(about.place.folder if about.place else about.main))
    return None


def read_trusted_settings(request: BuildRequest) -> Settings:
    """Read the settings file of a run; of one found in a checkout, only the trusted part."""
    found = find_settings(config_of(request, note_of(request)), request.source or ".")
    settings = check_settings(found.path, found.data, found.lines) if found else Settings()
    if request.config is None and found:  # the user named the file
        settings = _trusted_part(request, settings, place_of(found.path))
    wide = find_user_settings()
    if wide is None or wide.path == settings.path:
        return settings
    return settings.over(check_settings(wide.path, wide.data, wide.lines))


def _trusted_part(request: BuildRequest, settings: Settings, place: str) -> Settings:
    """Return the effective settings of a file found in a checkout: the harmless ones; all if trusted."""
    clean, withheld = withhold(settings, load_catalog())
    if not withheld or is_trusted(place):
        return settings
    left = without_given(request, withheld)
    if not left:
        return clean
    told = left if request.facts else tuple(_say_where(each) for each in left)
    return replace(clean, withheld={place: told})


def _say_where(withheld: Withheld) -> Withheld:
    """Say of a setting whose folder or file is not there that trust alone does not help."""
    value = withheld.value
    if not Path(value).is_absolute() or value.startswith(("//", "\\\\")) or Probe().exists(value):
        return withheld  # Windows would log in at the server of a UNC path
    return replace(withheld, why=f"{withheld.why}; {value} is not there")


def with_templates(settings: Settings) -> Settings:
    """Return the settings without the current folder's env templates, unless the user trusts them."""
    here = Path(os.path.realpath("."))
    if not (here / TEMPLATES).is_dir():
        return settings
    ours = {f"env_set.{shell}.in": text for shell, text in load_templates().items()}
    names = own_templates(here, ours)
    place = str(here)
    if not names or is_trusted(place):
        return settings
    found = tuple(Withheld(key=f"{TEMPLATES}/{name}", why="is run by the shell of a build") for name in names)
    return replace(
        settings, withheld={**settings.withheld, place: (*settings.withheld.get(place, ()), *found)}
    )


@contextlib.contextmanager
def hold_named_build(request: BuildRequest, report: Reporter) -> Iterator[None]:
    """Create the worktree of a named build and lock the build; do nothing without a name."""
    if request.dry_run or not (request.name or note_of(request)):
        yield
        return
    about = read_named_build(request)
    if about.place is None:
        yield
        return
    from torchbuild_tasks.features.builds.act import hold_build
    from torchbuild_tasks.system.git.fetch import access_for
    from torchbuild_tasks.system.git.transfer import git_settings

    def needed(root: Path) -> Callable[[str], bool]:
        return needed_submodules(look(request, everything=False))

    way = access_for(
        about.place.folder,
        report,
        config=git_settings(about.settings.mirrors),
        store=Path(store_folder(Probe())),
        offline=bool(flag_or_setting(request, about.settings, "offline")),
    )
    with interruptible(), hold_build(about.place, report, replace(way, needed=needed)):
        yield


def needed_submodules(question: Question) -> Callable[[str], bool]:
    """Return a function that says by a submodule's path whether the requested build needs it."""
    from torchbuild_tasks.plan.decisions import decide_build

    if question.facts.tree.problem:
        return lambda path: True
    needs = Needs(question, decide_build(question).variables)
    return lambda path: bool(needs.why(path))


def facts_of_coming_worktree(facts: Facts, about: Named, catalog: Catalog) -> Facts:
    """Return the facts with the tree of a worktree to come, which is that of its main checkout.

    With the version and the commit of its own ref, and with the submodules that the build itself brings.
    """
    tree = look_at_tree(Probe(), str(about.main), _read_by_front_end(catalog))
    if tree.problem is None and about.place:
        root = str(about.place.folder)
        build_dir = tree.build_dir and tree.build_dir.replace(tree.root, root, 1)
        tree = replace(tree, root=root, build_dir=build_dir, dirty=False, cache=None)
        tree = replace(tree, previous=None, installed=None, running=None, empty=(), absent=(), linkless=())
        if about.place.ref != "HEAD":
            tree = replace(tree, **_version_at(about.main, about.place.ref))
    return replace(facts, tree=tree)


def _version_at(main: Path, ref: str) -> dict[str, str]:
    """Return the version and the commit of a ref, if the checkout has it."""
    from torchbuild_tasks.system.git.run import Git

    git = Git(folder=main)
    found = {
        "commit": git.output("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}"),
        "version": (git.output("show", f"{ref}:version.txt") or "").strip()[:200],
    }
    return {name: value for name, value in found.items() if value}


def settings_of_main(settings: Settings, about: Named) -> Settings:
    """Return the settings for a build without a worktree yet, without the torch version that it names."""
    ref = about.place.ref if about.place else "HEAD"
    seen = str(about.main) + ("" if ref == "HEAD" else f", and it will be at {ref}")
    values = {name: value for name, value in settings.values.items() if name != "torch"}
    return replace(settings, values=values, seen_from=seen)


def look(
    request: BuildRequest,
    settings: Settings | None = None,
    *,
    everything: bool = True,
    keeps: bool = False,
    patience: float = math.inf,
) -> Question:
    """Check the request, read the settings file, load the rows, look at the machine.

    Args:
        settings: taken instead of those of a file.
        everything: also gather facts that the request does not need, and ask each program anew.
        keeps: write what programs have answered, for the next build.
        patience: no program is waited for longer, seconds.
    """
    check_request(request)
    about = read_named_build(request, settings)
    settings = about.settings
    check_texts(request, settings)
    request, settings = set_stale_aside(request, settings)
    source = request.source
    if about.place:
        request = replace(request, name=about.place.build.name, source=None)
        source = str(about.place.folder) if source else None
    if request.wheels:
        request = replace(request, wheels=os.path.realpath(Path(request.wheels).expanduser()))
    catalog = load_catalog()
    if settings.failures:  # the user's come before ours
        catalog = Catalog(failure=(*settings.failures, *catalog.failure))
    probe = Probe(patience=patience)
    if not everything:
        probe = replace(probe, answers=Answers(probe.state_folder()))
    if request.facts:
        facts = _described(request, source, settings, catalog)
        if source is None:
            return Question(request, facts, catalog, settings)
    else:
        facts = _facts(request, settings, catalog, everything, probe)
    if keeps and probe.answers:
        from torchbuild_tasks.build.answers import keep_answers

        keep_answers(probe.answers)
    if about.place and about.place.worktree and not about.place.folder.exists():
        facts = facts_of_coming_worktree(facts, about, catalog)
        settings = settings_of_main(settings, about)
    return Question(request, facts, catalog, settings)


def _described(request: BuildRequest, source: str | None, settings: Settings, catalog: Catalog) -> Facts:
    """Return another machine's facts, with the local checkout that `source` names, not built yet."""
    facts = read_facts(Path(str(request.facts)))
    # This command is given its flags by the variables of this machine.
    facts = replace(facts, own=own_names(os.environ, ignore_case=os.name == "nt"))
    if source is None:
        return facts
    tree = look_at_tree(Probe(), source, _read_by_front_end(catalog), tags=bool(request.torch))
    tree = replace(tree, cache=None, previous=None, installed=None, running=None)
    facts = replace(facts, tree=tree, patches=(), companions=())
    return _with_brought(_with_companions(facts, request, settings, catalog), request, settings)


def _without_links(path: Path) -> Path:
    """Return the path without links; links in a circle are an error on every Python.

    From Python 3.13 on `resolve` takes them as they are, and before it raises.
    """
    real = path.resolve()
    try:
        real.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise
    return real


def _facts(
    request: BuildRequest, settings: Settings, catalog: Catalog, everything: bool, probe: Probe
) -> Facts:
    """Gather the facts of the machine, the checkout, its companions, and the scheduler."""
    source = flag_or_setting(request, settings, "source") or "."
    asked = (*(split_assignment(text)[0] for text in request.set), *settings.variables)
    named = {*asked, *os.environ}
    facts = gather(
        source=str(_without_links(Path(source).expanduser())),
        python=flag_or_setting(request, settings, "python"),
        cuda=everything or may_be_cuda(request, settings, os.environ, catalog),
        cuda_toolkit=flag_or_setting(request, settings, "cuda_toolkit"),
        patterns=tuple(row.name for row in catalog.variable),
        front_end=_read_by_front_end(catalog),
        folders=tuple(row.path for row in catalog.submodule if not row.unused),
        tags=bool(flag_or_setting(request, settings, "torch")),
        changes=everything or bool(flag_or_setting(request, settings, "reproducible")),
        probe=probe,
        blas=catalog.blas,
        linked=[row for row in catalog.linked if everything or not named.isdisjoint(row.names)],
        around=layers_around_environment(request, settings, catalog, windows=os.name == "nt"),
        asked=asked,
    )
    facts = _with_companions(facts, request, settings, catalog)
    facts = _with_brought(facts, request, settings)
    scheduler = flag_or_setting(request, settings, "distribute")
    if scheduler and not is_reapi(str(scheduler)):
        facts = replace(facts, cluster=_ask_scheduler(str(scheduler), facts))
    return facts


def _read_by_front_end(catalog: Catalog) -> tuple[str, ...]:
    """Return the files of a checkout that setup.py or pip reads, as patterns."""
    return tuple(row.path for row in catalog.front_end if row.role == "reads")


def _with_companions(facts: Facts, request: BuildRequest, settings: Settings, catalog: Catalog) -> Facts:
    """Return the facts with the sources of the companions and the user's patches."""
    companions = flag_or_setting(request, settings, "with_")
    extensions = flag_or_setting(request, settings, "with_extension")
    if companions or extensions:
        from torchbuild_tasks.features.companions.look import with_companions

        facts = with_companions(facts, tuple(companions or ()), tuple(extensions or ()), catalog)
    folder = flag_or_setting(request, settings, "patch_dir")
    if flag_or_setting(request, settings, "reproducible") and facts.tree.commit:
        committed = look_at_commit_time(Probe(), facts.tree.root)
        facts = replace(facts, tree=replace(facts.tree, committed=committed))
    if own := look_at_patches(patch_folders(folder, settings.path, facts.tree.root)):
        facts = replace(facts, patches=own)
    return facts


def _with_brought(facts: Facts, request: BuildRequest, settings: Settings) -> Facts:
    """Return the facts with what lies here for a build without a network, if this is to be one."""
    if not flag_or_setting(request, settings, "offline"):
        return facts
    wheels = str(flag_or_setting(request, settings, "wheels") or "")
    wheels = str(Path(wheels).expanduser()) if wheels else ""
    from torchbuild_tasks.features.companions.choose import FOLDER

    probe = Probe()
    sources = probe.join(facts.tree.root, *FOLDER)
    store = facts.store.folder if facts.store else ""
    return replace(facts, brought=look_at_brought(probe, wheels, store, sources))


def cluster_files(facts: Facts) -> ClusterFiles:
    """Return the folder of this user's cluster files."""
    from torchbuild_tasks.features.cluster.ask import cluster_files as files_in

    return files_in(facts.store.folder if facts.store else str(Path(facts.tree.root) / files.STATE_DIR))


def _ask_scheduler(text: str, facts: Facts) -> Cluster:
    from torchbuild_tasks.features.cluster.ask import look_at_cluster

    url = scheduler_url(text)
    return look_at_cluster(url, cluster_files(facts).client(file_name(url)))


def fetching_of(question: Question) -> Fetching:
    """Return how helpers are fetched in this run: flag, else environment, else torchbuild.toml."""
    from torchbuild_tasks.build.work import Fetching
    from torchbuild_tasks.system.net.client import Net, read_mirrors

    store = question.facts.store
    mirror = question.request.mirror or os.environ.get("TORCHBUILD_MIRROR") or question.value("mirror", "")
    root = Path(question.facts.tree.root)
    return Fetching(
        store=Path(store.folder) if store else root / files.STATE_DIR / "store",
        lock_file=root / "torchbuild.lock",
        net=Net(
            mirrors=read_mirrors(mirror) if mirror else (),
            offline=question.given("offline") is not None,
            wheels=question.value("wheels", ""),
        ),
        require_hashes=question.given("require_hashes") is not None,
        allow_http=question.given("allow_http") is not None,
        git_mirrors=question.settings.mirrors,
    )


def cache_addresses(question: Question) -> str:
    """Return the value of --cache including passwords, which plan and manifest leave out."""
    return question.value("cache", "")


def require_checkout(question: Question) -> Path:
    """Return the checkout's folder.

    Raises:
        UsageError: there is no PyTorch in it, or it is a named build's that was not made yet.
    """
    tree = question.facts.tree
    if question.settings.seen_from and question.settings.build:
        name = question.settings.build.name
        raise UsageError(
            f"The build {name} is not there yet: {tree.root}",
            next_step=f"Make it: torchbuild build --name {name}",
        )
    if tree.problem:
        raise UsageError(f"{tree.root}: {tree.problem}", next_step="Name the checkout: --source PATH")
    return Path(tree.root)


def writer() -> str:
    """Return the name and version of this tool, for the files that it writes."""
    return f"torchbuild_tasks {__version__}"


def decide(question: Question) -> BuildPlan:
    """Make the plan; its verdict may be refuse."""
    settings = with_templates(question.settings)
    here = Path.cwd() if settings is question.settings else None
    templates = load_templates(here)
    return make_plan(replace(question, settings=settings), templates=templates, writer=writer())


def settle_linker(question: Question, plan: BuildPlan, report: Reporter) -> BuildPlan:
    """Try the planned linker; if it does not link here, plan again without it."""
    while plan.linker and (plan.linker.trial or plan.linker.folder):
        from torchbuild_tasks.build.preflight import try_linker

        reason = try_linker(plan, report)
        if not reason:
            break
        question = replace(question, catalog=refuse_linker(question.catalog, plan.linker, reason))
        plan = accept(decide(question))
    return plan


def accept(plan: BuildPlan) -> BuildPlan:
    """Return the plan, if its build can work.

    Raises:
        PlanRefused: a finding is an error; the exception has all of them.
    """
    if plan.verdict != "refuse":
        return plan
    errors = [finding for finding in plan.findings if finding.status == "error"]
    reasons = "one reason" if len(errors) == 1 else f"{len(errors)} reasons"
    raise PlanRefused(
        f"This build cannot work, for {reasons}. Nothing was written.",
        findings=tuple(errors),
    )
