"""Builds the wheel of routing_transformer: `pip install ./python`, `pip wheel ./python`.

The extension is one target of the project's own CMake build, so this file only calls CMake and packs the
result (PEP 517 and PEP 427). It needs nothing but Python itself, the Debian packages of scripts/packages.txt
and some minutes for the first build.

    BUILT_CORE   an extension module that is there already, instead of building one
    CORE_BUILD_DIR    where to build; build/release of the project unless told
"""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from typing import Any, Dict, List, Optional, Tuple

HERE = pathlib.Path(__file__).resolve().parents[1]
PROJECT = HERE.parent
# Wheels are archives of the same bytes whenever they are made.
WHEN = (1980, 1, 1, 0, 0, 0)


def _project() -> Dict[str, Any]:
    with open(HERE / "pyproject.toml", "rb") as file:
        return tomllib.load(file)["project"]


def _tag() -> str:
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{version}-{version}-{platform}"


def _core() -> pathlib.Path:
    """The extension module, built if need be."""
    given = os.environ.get("BUILT_CORE")
    if given:
        return pathlib.Path(given)
    build = pathlib.Path(os.environ.get("CORE_BUILD_DIR", PROJECT / "build" / "release"))
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    if not (build / "build.ninja").exists():
        subprocess.run(
            ["cmake", "-S", str(PROJECT), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"],
            check=True,
        )
    subprocess.run(["cmake", "--build", str(build), "--target", "routing_python"], check=True)
    core = build / "python" / "routing_transformer" / f"_core{suffix}"
    if not core.exists():
        raise SystemExit(
            f"routing_transformer: {core} was not built; the extension is for Debian's /usr/bin/python3, "
            f"and this is {sys.executable} with modules called *{suffix}"
        )
    return core


def _metadata() -> str:
    project = _project()
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {name}" for name in project["dependencies"]),
    ]
    return "\n".join(lines) + "\n"


def _info_folder() -> str:
    project = _project()
    return f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"


def _record_line(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}"


def _pack(target: pathlib.Path, files: List[Tuple[str, bytes]]) -> None:
    record = f"{_info_folder()}/RECORD"
    lines = [_record_line(name, data) for name, data in files] + [f"{record},,"]
    files = files + [(record, ("\n".join(lines) + "\n").encode())]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            entry = zipfile.ZipInfo(name, WHEN)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)


def build_wheel(
    wheel_directory: str,
    config_settings: Optional[Dict[str, Any]] = None,
    metadata_directory: Optional[str] = None,
) -> str:
    core = _core()
    package = HERE / "routing_transformer"
    sources = sorted(p for p in package.iterdir() if p.suffix in (".py", ".pyi") or p.name == "py.typed")
    files = [(f"routing_transformer/{p.name}", p.read_bytes()) for p in sources]
    files.append((f"routing_transformer/{core.name}", core.read_bytes()))
    # What reads subwords lies beside the extension, as a link to where the build leaves it.
    subwords = core.with_name("routing_subwords.so")
    files.append((f"routing_transformer/{subwords.name}", subwords.read_bytes()))
    info = _info_folder()
    wheel = f"Wheel-Version: 1.0\nGenerator: routing_build\nRoot-Is-Purelib: false\nTag: {_tag()}\n"
    files.append((f"{info}/METADATA", _metadata().encode()))
    files.append((f"{info}/WHEEL", wheel.encode()))
    name = f"{info.removesuffix('.dist-info')}-{_tag()}.whl"
    _pack(pathlib.Path(wheel_directory) / name, files)
    return name


def build_sdist(sdist_directory: str, config_settings: Optional[Dict[str, Any]] = None) -> str:
    raise SystemExit("routing_transformer: the sources are the whole project; take its repository instead")
