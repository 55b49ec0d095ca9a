"""No secret leaves in a report: each rule, where it may stand, and what must stay."""

from __future__ import annotations

import json
import re
import time

import pytest

from tests.support.examples import examples
from tests.support.for_each import each_case, for_each
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.fronts.parsing import flags
from torchbuild_tasks.options import flag_name
from torchbuild_tasks.text import redaction
from torchbuild_tasks.text.redaction import MASK, OWN_RULES, Redactor, is_secret, rules, without_forms
from torchbuild_tasks.verbs import VERBS

S = "Zq9" + "xK3vT7" * 5  # made up, and in no pattern's own shape

# A rule, a text with what it must take out, and what must be left of the text.
PLANTED = [
    ("url-login", f"git clone https://me:{S}@github.com/x", "github.com/x"),
    ("url-login", f"proxy http://corp%5Cada:p@ss{S}@proxy:3128/", "proxy:3128/"),
    ("url-login", f"redis://:{S}@cache:6379/0", "cache:6379/0"),
    ("authorization", f"> Authorization: Basic {S}\nnext", "next"),
    ("authorization", f"Cookie: session={S}; other={S}", "Cookie"),
    ("authorization", f"x-amz-security-token: {S}", "x-amz"),
    ("bearer", f"curl -H 'bearer {S}'", "curl"),
    ("netrc", f"machine pypi.corp login ada password {S}", "machine pypi.corp"),
    ("jwt", f"got eyJhbGciOi.eyJ{S}.{S} back", "back"),
    ("aws", "id AKIAIOSFODNN7EXAMPLE here", "here"),
    ("github", f"remote: ghp_{'a1B2' * 9} rejected", "rejected"),
    ("github", f"github_pat_{'a1B2_' * 9}", ""),
    ("gitlab", f"glpat-{'a1B2' * 5}", ""),
    ("package-index", f"pypi-AgEI{'a1B2' * 9}", ""),
    ("package-index", f"npm_{'a1B2' * 9}", ""),
    ("model-hosts", f"hf_{'a1B2' * 8} nvapi-{'a1B2' * 9} sk-{'a1B2' * 9}", ""),
    ("cloud", f"AIza{'a1B2' * 9} ya29.{'a1B2' * 9} xoxb-{'1234' * 5}", ""),
    ("flag", f"tool --token {S} --password={S} -api-key '{S} {S}' build", "build"),
    ("assignment", f'API_TOKEN="{S}\nnext', "next"),  # cut: the quotation mark is never closed
    ("assignment", f"api_key=>'{S}", "api_key"),
    ("assignment", f"API_TOKEN={S} make", "make"),
    ("assignment", f'export AWS_SECRET_ACCESS_KEY="{S} {S}"', "export"),
    ("assignment", f'{{"password": "{S}", "port": 5}}', '"port": 5'),
    ("assignment", f"https://blob/x?sv=1&sig={S}&se=2", "&se=2"),
    ("assignment", f"AccountKey={S};EndpointSuffix=core", "EndpointSuffix=core"),
    ("assignment", f'"{{\\"token\\": \\"{S}\\"}}"', "token"),
    ("email", "Ada <ada.lovelace@example.co.uk>", "Ada"),
]


def redactor(environ: dict[str, str] | None = None, users: tuple[str, ...] = ("ada",)) -> Redactor:
    return Redactor(environ or {}, users, ("machine7",))


@each_case(("rule", "text", "stays"), PLANTED)
def test_a_secret_goes_and_the_rest_stays(rule: str, text: str, stays: str) -> None:
    made = redactor()
    said = made.text(text)
    for secret in (S, "AKIA", "a1B2a1B2", "ada.lovelace", "p@ss"):
        assert secret not in said
    assert stays in said
    assert made.counts[rule]


def test_every_rule_is_tried() -> None:
    assert {rule.id for rule in rules()} == {
        *("private-key", *(rule for rule, _, _ in PLANTED)),
        *(row.id for row in load_catalog().secret_form if row.samples),
    }


KEY = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *[S * 2] * 3, "-----END RSA PRIVATE KEY-----"])


@each_case(
    "text",
    [
        f"before\n{KEY}\nafter",
        f"before\n{KEY[:200]}",
        f"{KEY[70:]}\nafter",
        json.dumps({"x": KEY}),
        f"before\n{KEY.replace('RSA', 'OPENSSH')}\nafter",
    ],
)
def test_a_private_key_is_replaced_complete_or_cut(text: str) -> None:
    said = redactor().text(text)
    assert S not in said
    assert ("before" in said) == ("before" in text)
    assert ("after" in said) == ("after" in text)


def test_what_the_environment_holds_goes_wherever_it_stands() -> None:
    value = 'p"4 ss/wörd'
    environ = {"MY_TOKEN": S, "DB_PASSWORD": value, "PIP_INDEX_URL": f"https://ada:{S[::-1]}@index/simple"}
    made = redactor(environ)
    text = f"said {S}, {json.dumps(value)} and p%224%20ss%2Fw%C3%B6rd; {S[::-1]} alone"
    said = made.text(text)
    assert "4 ss" not in said and "4%20ss" not in said and S not in said and S[::-1] not in said
    assert made.counts["known-value"] == 4


def test_a_short_value_is_left_where_it_is() -> None:
    assert redactor({"MY_TOKEN": "on"}).text("depends on it") == "depends on it"


def test_what_a_flag_sets_is_learnt() -> None:
    made = redactor()
    plan = {
        "set": [f"DEPLOY_TOKEN={S}"],
        "choices": [{"name": "DEPLOY_TOKEN", "value": S, "because": f"it is {S}"}],
        "inputs": {"variable DEPLOY_TOKEN": S, "compiler": "g++ 12"},
        "argv": ["tool", "--auth-token", "hunter2", "build"],
        "jobs": 3,
        "none": None,
    }
    made.learn(plan)
    said = made.value(plan)
    assert S not in json.dumps(said)
    assert "hunter2" not in json.dumps(said)
    assert (said["inputs"]["compiler"], said["jobs"], said["argv"][3]) == ("g++ 12", 3, "build")


@each_case(
    ("text", "expected"),
    [
        ("/home/ada/src/pytorch", "/home/USER/src/pytorch"),
        ("cd /home/ada", "cd /home/USER"),
        ("-I/home/ada/x -L/nfs/home/ada/y", "-I/home/USER/x -L/nfs/home/USER/y"),
        ("/Users/ada/src and more", "/Users/USER/src and more"),
        (r"C:\Users\Ada Lovelace\src\pytorch", r"C:\Users\USER USER\src\pytorch"),
        (r'"C:\\Users\\ada\\x"', r'"C:\\Users\\USER\\x"'),
        ("c:/Users/o'neil/x", "c:/Users/USER'USER/x"),
        ("owned by ada on machine7", "owned by USER on HOST"),
        ("adapter canada machine71", "adapter canada machine71"),
    ],
)
def test_names_of_people_and_machines(text: str, expected: str) -> None:
    assert redactor().text(text) == expected


def test_a_common_user_name_is_kept() -> None:
    assert redactor(users=("root", "user")).text("root user build") == "root user build"


@each_case(
    "text",
    [
        "FAILED: caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/native/Sorting.cpp.o",
        "/usr/bin/c++ -DUSE_C10D_GLOO -I/src/pytorch/build -O2 -std=gnu++17 -c x.cpp",
        "error: expected primary-expression before ';' token",
        "-- CUDA_HOST_COMPILER: /usr/bin/g++ (author of this file: nobody)",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "note: basic block 7, keyframe: 3, monkey = 1",
        "/etc/passwd: a file, not a folder",
        r"C:\run\secrets\api_token: Access is denied",
    ],
)
def test_what_a_build_says_stays_as_it_is(text: str) -> None:
    assert redactor({"PATH": "/usr/bin"}).text(text) == text


def test_names_of_secrets() -> None:
    yes = (
        "GITHUB_TOKEN",
        "aws_secret_access_key",
        "DB_PASSWORD",
        "HF_API_KEY",
        "apikey",
        "SIGNING_KEY",
        "sig",
    )
    no = ("USE_CUDA", "PWD", "OLDPWD", "AUTHOR", "MAX_JOBS", "PATH", "TORCH_CUDA_ARCH_LIST", "KEYBOARD", "x")
    assert all(map(is_secret, yes))
    assert not any(map(is_secret, no))


HARD = (
    *(
        "token",
        "-----BEGIN PRIVATE KEY-----",
        "a@",
        "/home/",
        "Ab1=",
        S * 2 + "\n",
        "--",
        "http://",
        "x-",
        "eyJ",
    ),
    *("http://a:b", "a:b", "curl ", "curl -u a", "mysql ", "password ", "machine ", "a=", "docker login "),
    *("https://hooks.slack.com/", "<password>", "bearer "),
)
LENGTH = examples(6_000, 30_000)


def test_no_line_can_hold_it_up() -> None:
    """A rule that goes back over all it has read for each letter would take hours for one of these."""
    texts = [(piece * LENGTH)[:LENGTH] for piece in HARD]
    texts += [word + " " * LENGTH for word in ("password", "a_token")]
    start = time.process_time()  # other programs on a busy machine do not count
    for text in texts:
        redactor().text(text)
    assert time.process_time() - start < 60  # a hang guard


def test_rules_have_names_of_their_own() -> None:
    names = [rule.id for rule in rules()] + list(OWN_RULES)
    assert len(names) == len(set(names))


NAMES = [(row.harmless, row.samples, row.near) for row in load_catalog().secret_name]


@each_case(("harmless", "samples", "near"), NAMES)
def test_true_and_false_friends(harmless: bool, samples: tuple[str, ...], near: tuple[str, ...]) -> None:
    for name in samples:
        assert is_secret(name) is not harmless, name
    for name in near:
        assert is_secret(name) is harmless, name


def test_no_flag_of_ours_is_a_secret() -> None:
    """Otherwise a printed command would lose its value: `cluster join URL --token-file REDACTED`."""
    names = {flag_name(field.name) for verb in VERBS for field in flags(verb)}
    assert [name for name in sorted(names) if is_secret(name)] == []


def test_names_that_a_build_knows_are_no_secrets() -> None:
    """A variable of a build that was taken for a secret could not be compared or replayed."""
    names = [row.name for row in load_catalog().variable]
    names += ["PATH", "LD_LIBRARY_PATH", "CMAKE_PREFIX_PATH", "USE_PRECOMPILED_HEADERS", "CCACHE_SLOPPINESS"]
    names += ["PYTHONPATH", "XDG_RUNTIME_DIR", "PYTORCH_BUILD_VERSION", "TORCH_CUDA_ARCH_LIST", "MAX_JOBS"]
    assert [name for name in names if is_secret(name)] == []


SECRET = "S3cr3tV4lue99"


@each_case(("rule", "sample"), [(row.id, each) for row in load_catalog().secret_form for each in row.samples])
def test_a_form_of_secrets_goes(rule: str, sample: str) -> None:
    made = redactor()
    said = made.text(sample.format(S=SECRET))
    assert SECRET not in said and said != sample
    assert MASK in said


@each_case("text", [each for row in load_catalog().secret_form for each in row.near])
def test_what_looks_like_a_form_stays(text: str) -> None:
    assert Redactor({}, people=False).text(text) == text


def test_an_engine_is_told_where_a_secret_is_and_the_command_can_be_given_again() -> None:
    command = "podman build --secret id=pip,src=/etc/pip.conf --secret id=x,type=env,env=X ."
    assert redactor().text(command) == command
    assert redactor().value(command.split(" ")) == command.split(" ")
    assert redactor().text(f"SECRET=id={SECRET}") == f"SECRET={MASK}"


OTHER_FORMS = """
DB_PASS={S}|--db-pass {S}|--password={S}|password: {S}|"password":"{S}"|AccountKey={S}==;EndpointSuffix=x
SharedAccessKey={S}|_authToken={S}|//registry/:_authToken={S}|https://h/x?access_token={S}
https://h/x?sv=2020&sig={S}%3D|https://h/x?X-Amz-Signature={S}|CONAN_LOGIN_USERNAME=x CONAN_PASSWORD={S}
set "MY_TOKEN={S}"|$env:MY_TOKEN = '{S}'|-DMY_TOKEN={S}|-DMY_TOKEN:STRING={S}|MY_TOKEN:STRING={S}
{{'token': '{S} with space'}}|identitytoken: {S}|export SSHPASS='{S}'|SLACK_WEBHOOK={S}|SENTRY_DSN={S}
DB_CONN={S}|{{"auths": {{"ghcr.io": {{"auth": "{S}"}}}}}}
"private_key_id": "{S}"|client-secret {S}|clientSecret={S}
DefaultEndpointsProtocol=https;AccountName=x;AccountKey={S}|SharedAccessSignature={S}|FTP_PW={S}|REDISCLI_AUTH={S}
"""


@each_case("form", re.split(r"[|\n]", OTHER_FORMS.strip()))
def test_a_name_of_secrets_wherever_it_stands(form: str) -> None:
    assert SECRET not in redactor().text(form.format(S=SECRET))


def test_a_hash_of_a_password_and_a_commit_are_no_secrets() -> None:
    for text in (
        "$2b$12$KIXQ4Y7Q9Xo5r3y1uO8ZyO",
        "0123456789abcdef0123456789abcdef01234567",
        "sha256:0123abcd",
    ):
        assert redactor().text(text) == text


def test_what_stands_everywhere_is_not_sought() -> None:
    environ = {
        "SOME_AUTH": "enabled",
        "A_TOKEN": "/home/x/tokens/a.txt",
        "B_TOKEN": r"C:\x\y",
        "C_KEY": "ab12cd34",
    }
    text = r"enabled in /home/x/tokens/a.txt and C:\x\y, not ab12cd34"
    assert Redactor(environ, people=False).text(text) == text.replace("ab12cd34", MASK)


@each_case(
    "text",
    [
        "c10::DispatchKey::CUDA",
        "dispatch_key = CUDA",
        "-- Performing Test COMPILER_PASS: Success",
        "PASS_REGULAR_EXPRESSION: x",
        "note: 'token' is a keyword; use 'tokens: 5'",
        "tokenizers 0.21 and tokens=12",
        "Cache-Key-Version: 3",
        "[12/90] Building CXX object caffe2/CMakeFiles/torch_cpu.dir/jit/passes/pass_manager.cpp.o",
        "https://download.pytorch.org/whl/cu128?x=1",
        "auth_type = none",
        "ninja: build stopped: subcommand failed.",
    ],
)
def test_what_pytorch_says_is_no_secret(text: str) -> None:
    assert Redactor({}, people=False).text(text) == text


def test_json_stays_json() -> None:
    text = json.dumps({"a_token": SECRET, "b": [f"MY_PASS={SECRET}"], "n": json.dumps({"password": SECRET})})
    said = redactor().text(text)
    assert SECRET not in said
    assert json.loads(json.loads(said)["n"]) == {"password": MASK}


@each_case("named", ["name", "variable"])
def test_a_value_next_to_a_secret_name_goes_however_the_name_is_called(named: str) -> None:
    row = {named: "DEPLOY_TOKEN", "value": '"Zq9xK3vT7Zq9"'}
    redactor = Redactor({}, people=False)
    redactor.learn([row])
    assert "Zq9x" not in redactor.text("DEPLOY_TOKEN is Zq9xK3vT7Zq9")
    assert "Zq9x" not in str(redactor.value(row))


def test_what_looks_like_a_secret_by_itself_is_taken_out_of_a_value() -> None:
    """The name of a person stays: a path without it would be another path."""
    assert without_forms("https://ada:Zq9xK3vT7n@host/x", "***").count("Zq9xK3vT7n") == 0
    assert without_forms("/home/ada/src -O2", "***") == "/home/ada/src -O2"


class Counted:
    """A pattern that counts the characters which its matches cover."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self.covered = 0

    def search(self, text: str, at: int) -> re.Match[str] | None:
        if match := self._pattern.search(text, at):
            self.covered += len(match[0])
        return match


@pytest.mark.parametrize("unit", ["a:b:", "--a=", "http://a/", "C:\\a\\", 'a:"', "-a b "])
def test_a_long_line_of_names_is_read_once(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value may reach to the end of its line: behind each name that took the square of it."""
    named = [rule for rule in rules() if rule.value]
    counted = [Counted(rule.pattern) for rule in named]
    swapped = tuple(rule._replace(pattern=each) for rule, each in zip(named, counted, strict=True))  # type: ignore[arg-type]
    monkeypatch.setattr(redaction, "rules", lambda: swapped)
    text = unit * 2000
    assert Redactor({}).text(text) == text
    assert sum(each.covered for each in counted) <= 2 * len(text)


def _said(row: object) -> list[str]:
    names = ("cause", "fix", "command", "proxy", "trust", "patience")
    values = [getattr(row, name, "") for name in names]
    return [text for each in values for text in ([each] if isinstance(each, str) else each)]


@for_each(
    (
        *(catalog := load_catalog()).failure,
        *catalog.kind,
        *catalog.component,
        *catalog.fetcher,
    ),
    str,
)
def test_what_a_row_says_stays(row: object) -> None:
    for text in _said(row):
        for word in ("'&T'", "a.h"):
            filled = re.sub(r"\{[^{}]*\}", word, text)
            assert Redactor({}, people=False).text(filled) == filled


def test_what_is_filled_into_a_row_goes_where_it_is_a_secret() -> None:
    told = f"newer ones make an error of what older ones let pass: API_TOKEN={S}. Call it"
    assert S not in redactor().text(told)
    assert S not in redactor().text(f"let pass: {S}")  # a log's line, which has no sentence around it
    assert S not in redactor().text(f"TWINE_PASSWORD={S}")
