"""Which way `--auto` takes, from what was seen; each is named with its time or what stands against it."""

from __future__ import annotations

from typing import Any

from tests.support.for_each import each_case
from tests.support.machines import linux_facts, plan_of, with_tree
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.wheel_overlay.cheapest import (
    Situation,
    choose_offer,
    describe_offers,
    list_user_choices,
    offer_ways,
)
from torchbuild_tasks.features.wheel_overlay.choose import Reached
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.values import replace

CATALOG = load_catalog()
NATIVE = (Reached(path="c10/a.cpp", kind="native", part="c10"),)
BINDING = (Reached(path="torch/csrc/Module.cpp", kind="native", part="torch_python"),)
GENERATED = (Reached(path="native_functions.yaml", kind="generated", part="operators"),)
MIXED = {"laid": True, "mixed": True, "wheel": "2.6.0"}


@each_case(
    ("seen", "way"),
    [
        ({"laid": True, "wheel": "2.6.0"}, "no-op"),
        ({"laid": True, "wheel": "2.6.0", "reached": NATIVE}, "front end"),
        ({"laid": True, "wheel": "2.6.0", "decided": ("USE_CUDA",)}, "front end"),
        ({"laid": True, "wheel": "2.6.0", "reached": BINDING}, "front end"),  # which may be built otherwise
        ({**MIXED, "steps": 2, "reached": BINDING}, "mixed"),
        ({**MIXED, "steps": 2}, "mixed"),  # the change was taken back
        ({**MIXED, "steps": 2, "reached": BINDING, "decided": ("USE_CUDA",)}, "mixed"),  # as it is configured
        ({**MIXED, "steps": 9, "step_seconds": 9.0, "full_seconds": 1.0, "reached": BINDING}, "mixed"),
        ({**MIXED, "steps": 0, "reached": BINDING}, "no-op"),
        ({**MIXED, "steps": 0}, "no-op"),
        ({**MIXED, "steps": 0, "reached": (*BINDING, *NATIVE)}, "front end"),
        ({**MIXED, "steps": 2, "reached": (*BINDING, *NATIVE)}, "front end"),
        ({**MIXED, "target": "changed", "steps": None, "reached": (*BINDING, *NATIVE)}, "mixed"),
        ({**MIXED, "target": "changed", "steps": 0, "reached": NATIVE}, "no-op"),
        ({**MIXED, "target": "changed", "steps": 0, "reached": (*NATIVE, *GENERATED)}, "front end"),
        ({"laid": True, "wheel": "2.6.0", "target": "changed", "reached": NATIVE}, "front end"),
        ({"built": True, "steps": 0, "wheel": "2.6.0"}, "no-op"),
        ({"built": True, "steps": 41}, "ninja install"),
        ({"built": True, "steps": 41, "step_seconds": 30.0, "full_seconds": 20.0}, "ninja install"),
        ({"built": True, "steps": 0, "full_seconds": 1.0}, "no-op"),
        ({"built": True, "steps": None, "no_ninja": "its Python is changed first"}, "front end"),
        ({"wheel": "dist/torch.whl", "wheel_size": 1_200_000_000}, "from-wheel"),
        ({"wheel": "2.6.0"}, "from-wheel"),
        ({"wheel": "2.6.0", "reached": NATIVE}, "front end"),
        ({"wheel": "2.6.0", "decided": ("USE_CUDA",)}, "front end"),
        ({"wheel": "2.6.0", "in_way": "torch/version.py"}, "front end"),
        ({"wheel": "2.6.0", "wheel_size": 10**9, "full_seconds": 8.0}, "front end"),
        ({"wheel": "2.6.0", "no_compile": "no compiler"}, "from-wheel"),
        ({"no_compile": "no compiler"}, "front end"),  # whose plan says what is missing
        ({}, "front end"),
    ],
)
def test_the_cheapest_right_way_is_taken(seen: dict[str, Any], way: str) -> None:
    assert choose_offer(offer_ways(Situation(**seen))).way == way


def test_one_line_names_every_way_with_its_time_or_why_not() -> None:
    seen = Situation(wheel="2.6.0", wheel_size=1_000_000_000, full_seconds=9000)
    offers = offer_ways(seen)
    said = describe_offers(choose_offer(offers), offers)
    assert said == (
        "auto: from-wheel, about 40 s (no-op nothing is built here; mixed nothing of torch_python has "
        "changed; ninja install nothing is built here; front end about 2.5 h)"
    )


@each_case("seen", [{"reached": NATIVE}, {"reached": NATIVE, "laid": True, "wheel": "2.6.0"}])
def test_a_changed_native_file_is_named_and_never_called_done(seen: dict[str, Any]) -> None:
    offers = offer_ways(Situation(wheel_size=1, **seen) if "wheel" in seen else Situation(**seen))
    obstacle = {each.way: each.obstacle for each in offers}
    assert obstacle["no-op"]
    assert obstacle["from-wheel"] == "c10/a.cpp must be compiled"


def test_why_bindings_are_not_compiled_alone_is_said() -> None:
    """Only a build against the wheel shows whether it was built alike; after one, its time is estimated."""
    laid = Situation(laid=True, wheel="2.6.0", reached=BINDING, step_seconds=20.0)
    obstacle = {each.way: each.obstacle for each in offer_ways(laid)}
    assert "build --from-wheel auto --target torch_python" in obstacle["mixed"]
    other = {each.way: each.obstacle for each in offer_ways(replace(laid, reached=NATIVE))}
    assert "build --from-wheel auto --target changed" in other["mixed"]
    generated = {each.way: each.obstacle for each in offer_ways(replace(laid, reached=GENERATED))}
    assert generated["mixed"] == "native_functions.yaml must be compiled"
    offers = offer_ways(replace(laid, mixed=True, steps=3))
    assert describe_offers(choose_offer(offers), offers).startswith(
        "auto: mixed, about 60 s (no-op Ninja has 3 steps;"
    )


def test_what_the_user_decided_of_the_build_is_asked_for() -> None:
    """A compile honours it; the jobs, the Python and the cache are the same whichever way is taken."""
    facts = with_tree(linux_facts(), commit="a" * 40)
    for flags, names in (
        ({}, set()),
        ({"jobs": 2, "python": "3.11", "cache": "none"}, set()),
        ({"set": ("CCACHE_DIR=/c", "MAX_JOBS=2")}, set()),
        ({"cpu": True}, {"USE_CUDA"}),
        ({"set": ("USE_MKLDNN=0",)}, {"USE_MKLDNN"}),
        ({"build_type": "Debug"}, {"build type"}),
        ({"mode": "wheel"}, {"mode"}),
        ({"target": "c10"}, {"--target"}),
    ):
        question = Question(BuildRequest(**flags), facts, CATALOG)
        assert names <= set(list_user_choices(question, plan_of(facts, **flags)))
        assert bool(names) == bool(list_user_choices(question, plan_of(facts, **flags))), flags
