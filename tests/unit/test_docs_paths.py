"""What the pages name of the repository exists: files, folders, modules, and what is read from modules.

A path may leave out the folders in front, as `lang/emit.py` does, and have `*` in a name."""

import re
import subprocess
from pathlib import Path, PurePath

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
PATH = re.compile(r"(?<!`)`((?:[\w*.-]+/)*(?:[\w*-]+\.(?:py|pyi|c|h|md|toml)|[\w*-]+/))`(?!`)")
ATTRIBUTE = re.compile(r"`((?:\w+/)*)(\w+)\.(_*[a-z]\w*)(?:\([^`]*\))?`")
MODULE_LIST = re.compile(r"`(\w+(?: \w+)+)`")
OUTSIDE = {"build/", "math.h"}  # no files of the repository


def files():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    names = listed or [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]
    return names + sorted({f"{folder}/" for name in names for folder in PurePath(name).parents})


FILES = files()
MODULES: dict[str, list[Path]] = {}
for _path in (ROOT / "pyarray").rglob("*.py"):
    MODULES.setdefault(_path.stem, []).append(_path)


def lines_of(page):
    return enumerate(page.read_text().splitlines(), 1)


def exists(path):
    pattern = re.compile("(.*/)?" + re.escape(path).replace(r"\*", "[^/]*"))
    return any(pattern.fullmatch(file) for file in FILES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_exist(page):
    missing = [
        f"line {number}: {path}"
        for number, line in lines_of(page)
        for path in PATH.findall(line)
        if path not in OUTSIDE and not exists(path)
    ]
    assert not missing, f"{page.relative_to(ROOT)} names what isn't there; write the names of today: {missing}"


def test_names_of_modules_exist():
    missing = []
    for page in (ROOT / "docs" / "design").glob("*.md"):
        for number, line in lines_of(page):
            for folder, module, name in ATTRIBUTE.findall(line):
                paths = [p for p in MODULES.get(module, ()) if str(p.parent).endswith(folder.rstrip("/"))]
                if paths and not any(re.search(rf"\b{name}\b", p.read_text()) for p in paths) and name != "py":
                    missing.append(f"{page.name}:{number}: {folder}{module}.{name}")
    assert not missing, missing


def test_lists_of_modules_are_those_of_their_folders():
    missing = []
    for number, line in lines_of(ROOT / "docs" / "design" / "layout.md"):
        folder = re.match(r"\| `(\w+)/`", line)
        for names in MODULE_LIST.findall(line.replace("`import pyarray`", "")) if folder else ():
            for name in names.split():
                path = ROOT / "pyarray" / folder[1] / name
                if not (path.is_dir() or path.with_suffix(".py").exists()):
                    missing.append(f"layout.md:{number}: {folder[1]}/{name}")
    assert not missing, missing
