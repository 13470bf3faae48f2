"""The package as a whole: hints, docstrings, versions, and that it installs."""

from __future__ import annotations

import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Callable

import pytest
import routing_transformer as rt
from conftest import ROOT


def test_everything_public_is_explained() -> None:
    missing = []
    for name in rt.__all__:
        thing = getattr(rt, name)
        if inspect.isclass(thing) and not issubclass(thing, Exception) and thing.__module__ != "routing_transformer._core":
            members = [(f"{name}.{m}", v) for m, v in vars(thing).items() if not m.startswith("_")]
            missing += [m for m, v in members if callable(v) and not inspect.getdoc(v)]
        if callable(thing) and not inspect.getdoc(thing):
            missing.append(name)
    missing += [f"plans.{name}" for name in rt.plans.__all__ if not inspect.getdoc(getattr(rt.plans, name))]
    assert not missing


def test_types_are_whole() -> None:
    if shutil.which("mypy", path="/usr/bin") is None:
        pytest.skip("mypy is not installed")
    folder = ROOT / "python"
    done = subprocess.run(
        ["/usr/bin/mypy", "--config-file", str(folder / "mypy.ini"), "--cache-dir", os.devnull,
         str(folder / "routing_transformer")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_type_hints_know_the_options_of_attend(tmp_path: pathlib.Path) -> None:
    if shutil.which("mypy", path="/usr/bin") is None:
        pytest.skip("mypy is not installed")
    before = """import routing_transformer as rt
from torch import Tensor


def use(x: Tensor, plan: rt.Plan) -> None:
"""
    calls = {
        "y: Tensor = rt.attend(x, x, x, plan, scale=0.5, merge='mean', recency=x)": "",
        "y, lse = rt.attend(x, x, x, plan, return_lse=True, dropout=0.1)": "",
        "rt.attend(x, x, x, plan, dropout='a tenth')": "No overload",
        "rt.attend(x, x, x, plan, mask=x)": "No overload",
    }
    file = tmp_path / "stranger.py"
    for call, complaint in calls.items():
        file.write_text(f"{before}    {call}\n", encoding="utf-8")
        done = subprocess.run(
            ["/usr/bin/mypy", "--config-file", str(ROOT / "python" / "mypy.ini"), "--cache-dir", os.devnull, str(file)],
            capture_output=True, text=True, check=False, env={**os.environ, "MYPYPATH": str(ROOT / "python")},
        )  # fmt: skip
        assert done.returncode == (1 if complaint else 0), call + "\n" + done.stdout + done.stderr
        assert re.search(complaint, done.stdout), done.stdout


def test_stubs_have_what_the_module_has() -> None:
    stubs = (ROOT / "python" / "routing_transformer" / "_core.pyi").read_text(encoding="utf-8")
    written = set(re.findall(r"^(?:class|def) (\w+)", stubs, re.M))
    there = {name for name in vars(rt._core) if not name.startswith("_")}
    assert written == there
    for name in there:
        thing = getattr(rt._core, name)
        if inspect.isclass(thing) and not issubclass(thing, Exception):
            body = re.search(rf"^class {name}\b.*?(?=^\S|\Z)", stubs, re.M | re.S)
            assert body is not None
            members = set(re.findall(r"    def (\w+)", body.group()))
            assert {m for m in vars(thing) if not m.startswith("_")} == members - {"__init__"}, name


def test_without_pytorch_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['torch'] = None; import routing_transformer"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "apt-get install python3-torch" in done.stderr


def test_versions_agree() -> None:
    cmake = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    project = (ROOT / "python" / "pyproject.toml").read_text(encoding="utf-8")
    version = re.search(r"VERSION ([\d.]+) LANGUAGES", cmake)
    assert version is not None
    assert rt.__version__ == version.group(1)
    assert f'version = "{rt.__version__}"' in project


def test_a_wheel_holds_the_package_and_installs(
    runs: Callable[[str], pathlib.Path], tmp_path: pathlib.Path
) -> None:
    """From the extension that is already built: what takes minutes is not done twice.

    A run of subwords shows that the wheel brings what reads them.
    """
    core = next(pathlib.Path(rt.__file__).parent.glob("_core*.so"))
    environment = {**os.environ, "BUILT_CORE": str(core.resolve())}
    environment.pop("PYTHONPATH", None)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run(
        [sys.executable, "-m", "venv", "--system-site-packages", str(tmp_path / "venv")], check=True
    )
    subprocess.run(
        [str(python), "-m", "pip", "install", "-q", "--no-index", "--disable-pip-version-check", str(ROOT / "python")],
        check=True, env=environment,
    )  # fmt: skip
    code = f"""
import routing_transformer as rt
print(rt.__file__, rt.plans.full(1, 1, 2))
model = rt.Model.load({str(runs("subwords"))!r})
print(model.encode("The old man").tolist(), model.logits([1, 2, 3]).double().sum().item())
"""
    said = subprocess.run(
        [str(python), "-c", code],
        check=False, capture_output=True, text=True, env=environment, cwd=tmp_path,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert str(tmp_path) in said.stdout and "queries=2" in said.stdout
    here = rt.Model.load(runs("subwords"))
    expected = f"{here.encode('The old man').tolist()} {here.logits([1, 2, 3]).double().sum().item()}"
    assert said.stdout.splitlines()[-1] == expected
