"""No credential leaves in a manifest."""

from __future__ import annotations

from pathlib import Path

from tests.support.for_each import each_case
from torchbuild_tasks.features.manifest.choose import conceal_inputs, without_secrets
from torchbuild_tasks.features.manifest.read import read_manifest
from torchbuild_tasks.model import Choice, EnvOp, Python
from torchbuild_tasks.model.record import EnvText, Installed, Manifest, Ran, Repository
from torchbuild_tasks.plan.freshness import is_same
from torchbuild_tasks.values import dumps, replace

PLAIN = read_manifest(Path(__file__).with_name("schema-1.json").read_bytes(), "x.json")
SECRET = "s3cr3tvalue"


def leaky(where: str) -> Manifest:
    login, repository = f"https://me:{SECRET}@host/x", PLAIN.repositories[0]
    text = EnvText(  # noqa: S604 - a name, no shell
        shell="fish", path="/e", sha256="", text=f"export HF_TOKEN='{SECRET}'\n"
    )
    op = EnvOp(op="set", name="HF_TOKEN", value=SECRET)
    made: dict[str, Manifest] = {
        "remote": replace(PLAIN, repositories=(replace(repository, url=login),)),
        "token in a remote": replace(
            PLAIN, repositories=(replace(repository, url=f"https://{SECRET}@host/x"),)
        ),
        "diff": replace(PLAIN, repositories=(replace(repository, diff=f"+ url = {login}\n"),)),
        "flag": replace(PLAIN, request={"set": [f"HF_TOKEN={SECRET}"]}),
        "mirror": replace(PLAIN, request={"mirror": login}),
        "toml": replace(PLAIN, settings={"values": {"cache": f"redis://:{SECRET}@h"}}),
        "toml set": replace(PLAIN, settings={"variables": {"API_KEY": SECRET}}),
        "environment": replace(PLAIN, facts=replace(PLAIN.facts, environ={"MY_PASSWORD": SECRET})),
        "env file": replace(PLAIN, env=(op,), env_files=(text,)),
        "choice": replace(PLAIN, choices=(Choice(name="AWS_SECRET", value=SECRET, because=f"was {SECRET}"),)),
        "command": replace(PLAIN, commands=(Ran(argv=("pip", "-i", login), cwd="/"),)),
        "define": replace(PLAIN, commands=(Ran(argv=("cmake", f"-DX_TOKEN={SECRET}"), cwd="/"),)),
        "origin": replace(PLAIN, requirements=(Installed(name="a", version="1", origin=login),)),
    }
    return made[where]


WHERE = ("remote", "token in a remote", "diff", "flag", "mirror", "toml", "toml set", "environment")
MORE = ("env file", "choice", "command", "define", "origin")


@each_case("where", [*WHERE, *MORE])
def test_a_secret_is_taken_out_wherever_it_stands(where: str) -> None:
    assert SECRET in dumps(leaky(where))
    clean = without_secrets(leaky(where))
    assert SECRET not in dumps(clean)
    assert clean.redacted


def test_a_secret_of_three_letters_goes_where_it_is_all_there_is() -> None:
    """Within a longer word, the three letters are a coincidence and stay."""
    short = replace(PLAIN, facts=replace(PLAIN.facts, environ={"MY_PASSWORD": "abc"}), argv=("abc", "abcde"))
    clean = without_secrets(short)
    assert "abc" not in clean.facts.environ.values()
    assert clean.argv[0] != "abc"
    assert clean.argv[1] == "abcde"


def test_the_fingerprint_has_a_hash_in_the_place_of_a_secret_so_that_a_change_of_it_is_seen() -> None:
    inputs = {
        "variable HF_TOKEN": SECRET,
        "variable CMAKE_URL": f"https://me:{SECRET}@host/x",
        "variable CXXFLAGS": f"-DX_TOKEN={SECRET}",
        "variable USE_CUDA": "0",
        "linker": f"lld /opt/{SECRET}/lld",
        "file auth.h": "5c0b146224c210fe",
    }
    clean = without_secrets(replace(PLAIN, inputs=inputs)).inputs
    assert clean == conceal_inputs(inputs)
    assert SECRET not in dumps(clean)
    assert {name for name in inputs if clean[name] == inputs[name]} == {"variable USE_CUDA", "file auth.h"}
    assert all(is_same(clean[name], inputs[name]) for name in inputs)
    assert not any(is_same(clean[name], f"{value}1") for name, value in inputs.items())


def test_names_of_packages_and_files_make_no_secrets_of_their_versions() -> None:
    python = Python(executable="/p", found_via="PATH", packages={"tokenizers": "3.25.1"})
    plain = replace(PLAIN, facts=replace(PLAIN.facts, pythons=(python,)), argv=("cmake-3.25.1",))
    assert without_secrets(plain).argv == ("cmake-3.25.1",)


def test_what_holds_none_is_left_as_it_is() -> None:
    diff = '+ email = "a@b.example"\n+ see https://host/path\n+ git@host:repo\n'
    repository = Repository(path="", commit="a" * 40, diff=diff, diff_sha256="b" * 64)
    facts = replace(PLAIN.facts, environ={"USE_CUDA": "0"})
    plain = replace(PLAIN, repositories=(repository,), facts=facts, redacted=(), request={})
    plain = replace(plain, choices=(), env=(), env_files=())
    assert without_secrets(plain) == plain


def test_a_diff_with_a_login_says_that_it_is_not_complete() -> None:
    (repository,) = without_secrets(leaky("diff")).repositories
    assert repository.diff == "+ url = https://***@host/x\n"
    assert "login" in repository.problem
