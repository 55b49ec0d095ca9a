"""What decides before a command is told: who asks a server, what its package had warned of, which line is first."""

# ruff: noqa: E501  (a wording in one line)

from __future__ import annotations

from tests.features.diagnosis.test_claims import elsewhere
from tests.support.diagnosis import read
from tests.support.for_each import each_case

TRACE = 'Traceback (most recent call last):\n  File "/v/lib/python3.10/site-packages/{}/ops.py", line 2, in f\n    x\n'
WARNS = "/v/lib/python3.10/site-packages/{}/io.py:13: UserWarning: {}\n  warn(\n"
LACKS = "Failed to load its library: /v/x.so: undefined symbol: _Zfoo"
OTHER = "HTTP Error 403: {}"
SYMBOL = "AttributeError: /v/lib/python3.10/site-packages/{}/libx.so: undefined symbol: cfoo"


@each_case(
    ("log", "said", "not_said"),
    [
        # Each program is told of a login in its own words, and of no other's.
        ("E: Failed to fetch http://m.lan/a.deb  403  Forbidden [IP: 10.0.0.5 80]", "/etc/apt/auth.conf.d", "docker login"),
        ("curl: (22) The requested URL returned error: 403", "-u USER:TOKEN", "git"),
        ("2026-05-02 10:11:13 ERROR 403: Forbidden.", "--ask-password", "git"),
        ("CondaHTTPError: HTTP 403 FORBIDDEN for url <https://conda.anaconda.org/x/linux-64/repodata.json>", "the channel's address", "docker"),
        ("Errors during downloading metadata for repository 'cuda':\n  - Status code: 403 for https://d.com/repomd.xml (IP: 1.2.3.4)\nError: Failed to download metadata for repo 'cuda'", "/etc/yum.repos.d", "proxy="),
        (TRACE.format("torch/hub").replace("ops.py", "x.py").replace("/torch/hub/x.py", "/torch/hub.py") + "urllib.error.HTTPError: HTTP Error 403: rate limit exceeded", "GITHUB_TOKEN=TOKEN", "browser"),
        (TRACE.format("a") + "urllib.error.HTTPError: " + OTHER.format("Forbidden"), "urllib wants a header", "GITHUB_TOKEN"),
        (TRACE.format("huggingface_hub") + "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/a/b", "hf auth login", "withdrawn"),
        ("Error: refused, status code: 403", "withdrawn", "docker login"),
        # What a package had warned of counts where the error is raised in it, and has no cause of its own.
        (WARNS.format("vis", LACKS) + TRACE.format("vis") + "AttributeError: no attribute 'read'", "install its release for this one", "It is raised at"),
        (WARNS.format("vis", LACKS) + TRACE.format("other") + "AttributeError: no attribute 'read'", "It is raised at", "its release"),
        (WARNS.format("vis", "it is slow here") + TRACE.format("vis") + "AttributeError: no attribute 'read'", "It is raised at", "its release"),
        (WARNS.format("vis", LACKS).replace("UserWarning", "DeprecationWarning") + TRACE.format("vis") + "AttributeError: no attribute 'read'", "It is raised at", "its release"),
        (WARNS.format("vis", LACKS) + TRACE.format("vis") + "OSError: [Errno 28] No space left on device", "df -h", "its release"),
        ("WARNING:root:vis: could not load its kernels\n" + TRACE.format("vis") + "AttributeError: no attribute 'read'", "to be mended first", "It is raised at"),
        (WARNS.format("bnb", "bnb was compiled without GPU support.") + TRACE.format("bnb") + SYMBOL.format("bnb"), "built without that part", "grep -rn"),
        (WARNS.format("bnb", "bnb was compiled without GPU support.") + TRACE.format("bnb") + SYMBOL.format("other"), "grep -rn", "built without that part"),
        # What nvidia-smi said before is why there is no GPU.
        ("Failed to initialize NVML: Driver/library version mismatch\n" + TRACE.format("torch/cuda") + "RuntimeError: No CUDA GPUs are available", "rmmod nvidia_uvm", "--gpus all"),
        # The first line's own cause goes before a row for what follows from it.
        ('Lmod has detected the following error:  The following module(s) are unknown: "CUDA/12.1.1"\n./b.sh: line 9: nvcc: command not found', "module spider", "Install a CUDA toolkit"),
        ("./b.sh: line 9: nvcc: command not found", "Install a CUDA toolkit", "module spider"),
        # A Python of some release is no package of the system's; a program's own words name it.
        ("/usr/bin/env: 'python3.9': No such file or directory", "uv python install 3.9", "apt-file"),
        ("  The pkg-config command could not be found.", "pkg-config", "grep"),
        ("ERROR: JAVA_HOME is set to an invalid directory: /usr/lib/jvm/x", "let JAVA_HOME name the one that is here", "apt"),
        # An installed torch is no checkout.
        (TRACE.format("torch") + "ModuleNotFoundError: No module named 'torch.version'", "not whole", "leave the checkout"),
        (TRACE.format("torch").replace("/v/lib/python3.10/site-packages", "/src") + "ModuleNotFoundError: No module named 'torch.version'", "leave the checkout", "~orch"),
        # Gloo is no NCCL.
        (TRACE.format("torch/distributed") + "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.1.0.4]:31200", "each other rank", "NCCL_DEBUG"),
    ],
)  # fmt: skip
def test_asks_before_it_advises(log: str, said: str, not_said: str) -> None:
    told = elsewhere(log)
    assert said in told.fix
    assert not_said not in told.fix


def test_repository_refused_by_all_mirrors_names_the_answer() -> None:
    reading = read(
        "Errors during downloading metadata for repository 'a':\n  - Curl error (28): Timeout was reached for"
        " https://d.com/repomd.xml [Connection timed out]\nError: Failed to download metadata for repo 'a'\n"
    )
    assert (reading.line_number, reading.kind) == (2, "network")
