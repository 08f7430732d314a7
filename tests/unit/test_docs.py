"""The documents say what is true: their Python runs and gives what is stated, and the reference is current.

A block marked `python` runs after those before it, as part of one program of the page's name. What it states:
`expression  # -> value` is the value's `repr`, or what a `print` prints; `statement  # -> SomeError: text` is
the exception; `…` at the end stands for any rest. A long one is in comments below the statement, lines after
the first indented by three more. A block marked `text` after it is its whole output, the
message of its exception last.
"""

import ast
import contextlib
import importlib.util
import io
import itertools
import linecache
import re
from pathlib import Path

import pytest

from pyarray._core import clear_plans
from pyarray.tune import store as tune_store

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *(DOCS / "guide").glob("*.md"), ROOT / "README.md"])
ALL_PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STATED = re.compile(r"#\s*->\s*(.+)$")


def ids(path):
    return str(path.relative_to(ROOT))


def blocks_of(text):
    """Pairs of a block's code and the output stated after it, None without one."""
    fences = [m.groups() for m in FENCE.finditer(text)]
    for k, (language, code) in enumerate(fences):
        if language == "python":
            follows = fences[k + 1] if k + 1 < len(fences) else ("", "")
            yield code, follows[1] if follows[0] == "text" else None


def stated_of(lines):
    """What is stated of the statement that ends in the first line: behind it, or in comments below it."""
    if found := STATED.search(lines[0]):
        return found.group(1).strip()
    below = list(itertools.takewhile(lambda line: line.startswith("#"), map(str.strip, lines[1:])))
    if not below or not below[0].startswith("# -> "):
        return None
    more = itertools.takewhile(lambda line: line.startswith("#    "), below[1:])
    return " ".join([below[0].removeprefix("# -> "), *(line.removeprefix("#    ") for line in more)])


def shown(error):
    module = type(error).__module__.partition(".")[0]
    return f"{'' if module == 'builtins' else module + '.'}{type(error).__name__}: {error}"


class Program:
    """The blocks of one page as one file, so that kernels have a source and messages have lines."""

    def __init__(self, path):
        self.path, self.text, self.space = path, "", {"__name__": "__main__", "__file__": str(path)}

    def run(self, code, stated):
        first = self.text.count("\n")
        self.text += code + "\n"
        self.path.write_text(self.text, encoding="utf-8")
        linecache.checkcache(str(self.path))
        lines = code.splitlines()
        tree = ast.increment_lineno(ast.parse(code, str(self.path)), first)
        printed = io.StringIO()
        for statement in tree.body:
            wanted = stated_of(lines[statement.end_lineno - 1 - first :])
            before = printed.tell()
            with contextlib.redirect_stdout(printed):
                value, error = self.outcome(statement)
            if wanted is not None:
                answer = shown(error) if error is not None else repr(value)
                if error is None and value is None:
                    answer = printed.getvalue()[before:].strip()
                same = answer == wanted or (wanted.endswith("…") and answer.startswith(wanted[:-1]))
                assert same, f"{self.path.name}: {ast.unparse(statement)} gave\n{answer}, not\n{wanted}"
            elif error is not None:
                if stated is None or statement is not tree.body[-1]:
                    raise error
                print(shown(error), file=printed)
        if stated is not None:
            found = printed.getvalue().rstrip()
            assert found == stated.rstrip(), f"{self.path.name} printed\n{found}\nand not\n{stated}"

    def outcome(self, statement):
        """Value and exception of one statement."""
        try:
            if isinstance(statement, ast.Expr):
                code = compile(ast.Expression(statement.value), str(self.path), "eval")
                return eval(code, self.space), None
            exec(compile(ast.Module([statement], []), str(self.path), "exec"), self.space)
        except Exception as error:
            return None, error
        return None, None


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.setattr(tune_store, "folder", lambda: tmp_path)  # nothing is known from earlier sessions
    clear_plans()  # and of what other tests have called
    text = page.read_text(encoding="utf-8")
    program = Program(tmp_path / f"{page.stem.lower()}.py")
    for code, stated in blocks_of(text):
        for library in ("torch", "dask.array", "xarray"):
            if library in code:
                pytest.importorskip(library)
        program.run(code, stated)


@pytest.mark.parametrize("page", ALL_PAGES, ids=ids)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", FENCE.sub("", text))
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not missing


@pytest.mark.parametrize("page", [*ALL_PAGES, ROOT / "bench" / "README.md"], ids=ids)
def test_lines_have_at_most_120_columns(page):
    """But for rows of tables, and for what programs print: blocks marked `text`."""
    text = re.sub(r"(?ms)^```text$.*?^```$", "", page.read_text(encoding="utf-8"))
    assert not [line for line in text.splitlines() if len(line) > 120 and not line.startswith("|")]


def test_every_page_is_in_the_navigation_of_the_site():
    """`make docs` checks more, anchors too, and takes mkdocs, which the tests do without."""
    entries = re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(entries) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def make_reference():
    spec = importlib.util.spec_from_file_location("make_reference", DOCS / "make_reference.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_reference_is_current():
    assert not make_reference().stale(), "run python docs/make_reference.py"


def test_every_refusal_has_its_row():
    """One for each place in the language's code that refuses a program; places that say the same share a row."""
    made = make_reference()
    page = (DOCS / "reference" / "language_errors.md").read_text()
    modules = made.refusing_modules()
    assert len(modules) > 30
    for module in modules:
        places, messages = list(made.refusals(module)), list(made._messages(module))
        lines = [call.lineno for _, call in places]
        assert len(messages) == len(places), f"{module.__name__}: a message that can't be read, of lines {lines}"
        for message, _ in messages:
            assert f"| {message.replace('|', chr(92) + '|')} |" in page, f"{module.__name__}: {message}"


def test_wrong_statements_are_found(tmp_path):
    program = Program(tmp_path / "page.py")
    program.run("x = 1\nx + 1  # -> 2\nprint(x)  # -> 1\nx / 0  # -> ZeroDivisionError: division…\n", None)
    program.run("x + 1\n# -> 2\nx / 0\n# -> ZeroDivisionError: division\n#    by…\nx", None)
    for wrong in (
        "x + 1  # -> 3",
        "print(x)  # -> 2",
        "x + 1  # -> ValueError…",
        "x / 0  # -> ValueError…",
        "x\n# -> 2",
    ):
        with pytest.raises(AssertionError):
            program.run(wrong + "\n", None)
    with pytest.raises(AssertionError):
        program.run("print(1)\n", "2\n")
    with pytest.raises(ZeroDivisionError):
        program.run("1 / 0\nprint(1)\n", "ZeroDivisionError: division by zero\n")
