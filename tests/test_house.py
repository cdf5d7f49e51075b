"""DESIGN's direction: models.trace ← models; models.trace ← viz; models, viz ← sections ← app."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def imports(code: str) -> set[str]:
    """Every module a piece of code imports, in full, and so both `a` and `a.b` for `from a import b`."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here, so that this test can read them"
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def reaches(found: set[str], *modules: str) -> set[str]:
    """Those imports that are one of the modules or lie inside it."""
    return {name for name in found for module in modules if name == module or name.startswith(f"{module}.")}


def files(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def of(path: Path) -> set[str]:
    return imports(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "code, wanted",
    [
        ("import torch", {"torch"}),
        ("import torch.nn as nn, numpy", {"torch.nn", "numpy"}),
        ("from torch import nn", {"torch", "torch.nn"}),
        ("from models.trace import Step", {"models.trace", "models.trace.Step"}),
        ("from models import trace, masks", {"models", "models.trace", "models.masks"}),
        ("def f():\n    import streamlit", {"streamlit"}),
        ("if True:\n    from streamlit import runtime", {"streamlit", "streamlit.runtime"}),
        ("'import torch'", set()),
    ],
)
def test_imports_are_found(code, wanted):
    assert imports(code) == wanted


def test_reaching_goes_by_whole_names():
    assert reaches({"torch", "torch.nn", "torchvision"}, "torch") == {"torch", "torch.nn"}


@pytest.mark.parametrize("room", ["models", "viz", "sections"])
def test_every_room_is_there_to_be_walked(room):
    assert len(files(room)) > 1


def test_the_record_stands_on_nothing():
    assert not reaches(of(ROOT / "models/trace.py"), "torch", "einops", "numpy", "plotly", "streamlit", "models")


@pytest.mark.parametrize("path", files("models"), ids=name)
def test_models_know_nothing_of_pages_or_pictures(path):
    assert not reaches(of(path), "streamlit", "plotly", "viz", "sections", "app")


@pytest.mark.parametrize("path", files("viz"), ids=name)
def test_pictures_know_nothing_of_models_but_the_record(path):
    found = of(path)
    assert not reaches(found, "torch", "einops", "streamlit", "sections", "app")
    assert reaches(found, "models") == reaches(found, "models.trace")


@pytest.mark.parametrize("path", files("sections"), ids=name)
def test_pages_do_not_know_the_app(path):
    assert not reaches(of(path), "app")


def test_only_the_app_and_its_pages_know_streamlit():
    others = [path for room in ("models", "viz", "benchmarks", "deploy") for path in files(room)]
    know = {name(path) for path in others if reaches(of(path), "streamlit")}
    assert know <= {
        "benchmarks/site.py",  # a page itself, which its benchmark serves
        "benchmarks/overview.py",  # weighs its messages
        "benchmarks/visitors.py",  # speaks Streamlit's protocol
        "deploy/hosted.py",  # the server around the app
        "deploy/guard.py",
    }


@pytest.mark.parametrize("path", files("deploy"), ids=name)
def test_hosting_knows_nothing_of_what_it_hosts(path):
    assert not reaches(of(path), "models", "viz", "sections", "torch", "app")


def test_the_app_is_short():
    assert len((ROOT / "app.py").read_text(encoding="utf-8").splitlines()) < 40


def test_pictures_load_no_torch_by_any_detour():
    modules = ", ".join(name(path)[: -len(".py")].replace("/", ".") for path in files("viz"))
    code = f"import sys, {modules}; sys.exit(bool({{'torch', 'streamlit'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
