"""Trees in packages of Debian, npm and Python: real clients, with registries of our own."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from source_support import header, tiny_engine, tiny_tree

from benchrunner.catalog import Catalog
from benchrunner.errors import SourceError
from benchrunner.processes import telling_line
from benchrunner.sources import apt, fetch, find_version, list_versions, npm, pypi, system

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchrunner.definitions import Engine
    from benchrunner.model import SourceRef
    from benchrunner.sources.tree import Tree

NPM = {"kind": "npm", "path": "deps/tiny", "versions": {"1.2.3": "tiny-down@7.0.0"}}
PYPI = {"kind": "pypi", "path": "src", "versions": {"1.2.3": "tinywheel==0.9"}}
APT = {"kind": "apt", "versions": {"1.2.3": "tiny=1.2.3-4"}}


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def found(engine: Engine, text: str, cache: Path) -> SourceRef:
    ref = find_version(engine, text, cache)
    assert ref is not None
    return ref


def fetched(engine: Engine, text: str, cache: Path) -> Tree:
    folder = cache / f"tree {len(list(cache.glob('tree *')))}"
    return fetch(engine, found(engine, text, cache), folder, cache)


def without_clients(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """No package client on the PATH; what an archive needs is there."""
    folder.mkdir()
    for name in ("tar", "gzip", "setpriv"):
        (folder / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(folder))


# ---------------------------------------------------------------- the tables


def test_tables_are_listed_without_a_client(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_clients(monkeypatch, tmp_path / "bin")
    listing = list_versions(tiny_engine(NPM, PYPI, APT))
    assert [(ref.version, ref.kind, ref.ref) for ref in listing.refs] == [
        ("1.2.3", "npm", "tiny-down@7.0.0"),
        ("1.2.3", "pypi", "tinywheel==0.9"),
        ("1.2.3", "apt", "tiny=1.2.3-4"),
    ]
    assert "npm: npm is not installed: nothing can be fetched" in listing.notes
    no_apt = "apt: apt-get is not installed (Debian: apt): nothing can be fetched"
    assert no_apt in listing.notes


@pytest.mark.parametrize(
    ("text", "version", "kind"),
    [
        ("tiny-down@7.0.0", "1.2.3", "npm"),
        ("@scope/other@1.0.0", "@scope/other@1.0.0", "npm"),
        ("tinywheel==0.9", "1.2.3", "pypi"),
        ("other==2.0", "2.0", "pypi"),
        ("tiny=1.2.3-4", "1.2.3", "apt"),
        ("other=1:2.0+dfsg-1", "2.0", "apt"),
    ],
)
def test_a_package_can_be_named(text: str, version: str, kind: str, cache: Path) -> None:
    ref = found(tiny_engine(NPM, PYPI, APT), text, cache)
    assert (ref.version, ref.kind, ref.ref) == (version, kind, text)


def test_the_source_whose_table_names_a_package_is_asked_first(cache: Path) -> None:
    crate = {"kind": "crate", "versions": {"1.0.0": "tiny-sys@4.0.0"}}
    assert found(tiny_engine(NPM, crate), "tiny-sys@4.0.0", cache).kind == "crate"


@pytest.mark.parametrize(
    ("kind", "ref", "message"),
    [
        (npm, "tiny", "'tiny' does not name an npm package"),
        (pypi, "tiny@1", "'tiny@1' does not name a source distribution"),
        (apt, "tiny", "'tiny' does not name a Debian source package"),
    ],
)
def test_a_table_with_a_wrong_name_says_so(kind: Any, ref: str, message: str, cache: Path) -> None:
    source = {"kind": kind.__name__.rpartition(".")[2], "versions": {"1.0": ref}}
    engine = tiny_engine(source)
    (listed,) = list_versions(engine).refs
    with pytest.raises(SourceError) as caught:
        fetch(engine, listed, cache / "tree", cache)
    assert caught.value.message == message


def test_debian_numbers_say_their_upstream_version() -> None:
    numbers = ["5.3.28+dfsg2-1", "1:0.9.24-1+b1", "3.40.1-2+deb12u2", "2.0~rc1-3", "7"]
    assert [apt.upstream(n) for n in numbers] == ["5.3.28", "0.9.24", "3.40.1", "2.0", "7"]


def test_the_line_that_tells_is_found_in_what_clients_say() -> None:
    said = "npm error code E404\nnpm error 404 Not Found - x\nnpm error A complete log\n"
    assert telling_line(said) == "npm error 404 Not Found - x"
    assert telling_line("W: old\nE: Unable to find it\nbye\n") == "E: Unable to find it"
    assert telling_line("ERROR: No matching distribution\nWARNING: x\n").startswith("ERROR: No")


def test_every_shipped_engine_names_packages_that_its_sources_can_read(cache: Path) -> None:
    catalog = Catalog(working_directory=Path("/"), search_path=())
    for name in catalog.names("engines"):
        engine = catalog.engine(name)
        for source in engine.source:
            for version, package in source.versions.items():
                ref = found(engine, package, cache)
                assert (ref.version, ref.kind) == (version, source.kind), package


# ---------------------------------------------------------------- npm


def npm_tarball() -> bytes:
    files = {"package/deps/tiny/include/version.h": header("1.2.4"), "package/x": "x"}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


@contextmanager
def registry(asked: list[str]) -> Iterator[str]:
    """An npm registry with one package in one version."""
    tarball = npm_tarball()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            where = f"http://127.0.0.1:{self.server.server_port}"  # type: ignore[attr-defined]
            digest = base64.b64encode(hashlib.sha512(tarball).digest()).decode()
            dist = {"tarball": f"{where}/tiny.tgz", "integrity": f"sha512-{digest}"}
            one = {"name": "tiny-down", "version": "7.0.0", "dist": dist}
            whole = {
                "name": "tiny-down",
                "dist-tags": {"latest": "7.0.0"},
                "versions": {"7.0.0": one},
            }
            known = {"/tiny-down": json.dumps(whole).encode(), "/tiny.tgz": tarball}
            body = known.get(self.path)
            self.send_response(200 if body is not None else 404)
            self.end_headers()
            self.wfile.write(body or b"{}")

        def log_message(self, *words: Any) -> None:
            del words

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
def test_npm_packs_once_and_then_needs_nobody(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, asked = tiny_engine(NPM), list[str]()
    with registry(asked) as url:
        monkeypatch.setenv("npm_config_registry", url)
        monkeypatch.setenv("HOME", str(tmp_path))
        tree = fetched(engine, "tiny-down@7.0.0", cache)
        assert tree.version == "1.2.4"
        assert tree.path.name == "tiny"
        with pytest.raises(SourceError) as caught:
            fetched(engine, "not-there@1.0.0", cache)
        assert "npm pack not-there@1.0.0 failed: npm " in caught.value.message
        assert "404" in caught.value.message
    before = len(asked)
    without_clients(monkeypatch, tmp_path / "bin")
    assert fetched(engine, "tiny-down@7.0.0", cache).version == "1.2.4"
    assert len(asked) == before
    wrong = tiny_engine({**NPM, "path": "deps/huge"})
    with pytest.raises(SourceError, match=r"tiny-down@7\.0\.0 has no folder 'deps/huge'"):
        fetched(wrong, "tiny-down@7.0.0", cache)
    with pytest.raises(SourceError) as caught:
        fetched(engine, "tiny-down@8.0.0", cache)
    assert str(caught.value) == "npm is not installed\n  try: apt-get install -y npm"


# ---------------------------------------------------------------- PyPI

BACKEND = """\
def prepare_metadata_for_build_wheel(folder, settings=None):
    import os
    name = "tinywheel-0.9.dist-info"
    os.makedirs(os.path.join(folder, name))
    with open(os.path.join(folder, name, "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\\nName: tinywheel\\nVersion: 0.9\\n")
    return name
def build_wheel(folder, settings=None, metadata=None):
    raise RuntimeError("nothing is built")
"""
PROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "tinywheel"
version = "0.9"
"""


@pytest.mark.skipif(pypi.lacks() != "", reason="needs pip")
def test_pip_downloads_a_source_distribution_and_builds_nothing(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "tinywheel-0.9"
    tiny_tree(place / "src")
    (place / "backend.py").write_text(BACKEND)
    (place / "pyproject.toml").write_text(PROJECT)
    (place / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: tinywheel\nVersion: 0.9\n")
    shop = tmp_path / "shop"
    shop.mkdir()
    with tarfile.open(shop / "tinywheel-0.9.tar.gz", "w:gz") as archive:
        archive.add(place, place.name)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shop))
    engine = tiny_engine(PYPI)
    tree = fetched(engine, "tinywheel==0.9", cache)
    assert (tree.version, tree.path.name) == ("1.2.3", "src")
    with pytest.raises(SourceError, match=r"pip failed: ERROR: .*tinywheel==1.0"):
        fetched(engine, "tinywheel==1.0", cache)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "closed"))
    assert fetched(engine, "tinywheel==0.9", cache).version == "1.2.3"


def test_a_python_without_pip_says_so(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    engine = tiny_engine(PYPI)
    assert "pypi: pip is not installed: nothing can be fetched" in list_versions(engine).notes
    with pytest.raises(SourceError) as caught:
        fetched(engine, "tinywheel==0.9", cache)
    assert str(caught.value) == "pip is not installed\n  try: apt-get install -y python3-pip"


# ---------------------------------------------------------------- Debian

CONTROL = """\
Source: tiny
Maintainer: T <t@example.org>
Standards-Version: 4.6.0

Package: tiny
Architecture: any
Description: tiny
"""
CHANGELOG = """\
tiny (1.2.3-4) unstable; urgency=low

  * Tiny.

 -- T <t@example.org>  Thu, 01 Jan 2026 00:00:00 +0000
"""
PATCH = """\
--- a/main.c
+++ b/main.c
@@ -1,1 +1,2 @@
+// patched
 #include <stdio.h>
"""
needs_dpkg = pytest.mark.skipif(apt.lacks() != "", reason="needs apt and dpkg-dev")


def debian_repository(folder: Path, suite: str) -> Path:
    """A mirror with one source package that has a patch; nobody has signed it."""
    pool, work = folder / "pool", folder / "work" / "tiny-1.2.3"
    tiny_tree(work)
    pool.mkdir()
    with tarfile.open(folder / "work" / "tiny_1.2.3.orig.tar.gz", "w:gz") as archive:
        archive.add(work, work.name)
    debian = work / "debian"
    (debian / "patches").mkdir(parents=True)
    (debian / "source").mkdir()
    texts = {
        "control": CONTROL, "changelog": CHANGELOG, "rules": "#!/usr/bin/make -f\n",
        "source/format": "3.0 (quilt)\n", "patches/series": "mark\n", "patches/mark": PATCH,
    }  # fmt: skip
    for name, text in texts.items():
        (debian / name).write_text(text)
    build = ["dpkg-source", "--build", work.name]
    subprocess.run(build, cwd=work.parent, check=True, capture_output=True)
    for path in work.parent.glob("tiny_*"):
        path.rename(pool / path.name)
    index = folder / "dists" / suite / "main" / "source"
    index.mkdir(parents=True)
    scan = ["dpkg-scansources", "pool"]
    done = subprocess.run(scan, cwd=folder, check=True, capture_output=True, text=True)
    (index / "Sources").write_text(done.stdout)
    return folder


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This machine's apt, told that its only mirror is a folder of ours."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    debian_repository(folder, "bookworm")
    sources = tmp_path / "sources.list"
    sources.write_text(f"deb file:{folder} bookworm main\n")
    settings = tmp_path / "apt.conf"
    settings.write_text(
        f'Dir::Etc::sourcelist "{sources}";\nDir::Etc::sourceparts "/dev/null";\n'
        'Acquire::AllowInsecureRepositories "true";\nAPT::Get::AllowUnauthenticated "true";\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(settings))
    release = {"ID": "tiny", "VERSION_CODENAME": "bookworm"}
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: release)
    return folder


@needs_dpkg
@pytest.mark.usefixtures("mirror")
def test_a_debian_source_comes_with_its_patches_and_leaves_apt_as_it_is(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = tiny_engine(APT)
    tree = fetched(engine, "tiny=1.2.3-4", cache)
    assert tree.version == "1.2.3"
    assert (tree.path / "main.c").read_text().startswith("// patched\n")
    lines = (cache / "apt" / "bookworm" / "sources.list").read_text().splitlines()
    assert lines == [f"deb-src file:{tmp_path}/mirror/ bookworm main"]
    with pytest.raises(SourceError) as caught:
        fetched(engine, "tiny=9.9-1", cache)
    assert caught.value.message.startswith("tiny=9.9-1 is not to be had from bookworm of this ")
    assert "'9.9-1'" in caught.value.message
    shutil.rmtree(tmp_path / "mirror")
    assert fetched(engine, "tiny=1.2.3-4", cache).version == "1.2.3"


@needs_dpkg
@pytest.mark.usefixtures("mirror")
def test_a_suite_that_the_mirror_has_not_is_named(cache: Path) -> None:
    with pytest.raises(SourceError, match=r"tiny=1.2.3-4 is not to be had from sarge of this "):
        fetched(tiny_engine({**APT, "suite": "sarge"}), "tiny=1.2.3-4", cache)
    with pytest.raises(SourceError, match="'no such' does not name a Debian suite"):
        fetched(tiny_engine({**APT, "suite": "no such"}), "tiny=1.2.3-4", cache)


def test_a_machine_that_is_not_debian_says_so(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> dict[str, str]:
        raise OSError

    monkeypatch.setattr("platform.freedesktop_os_release", absent)
    with pytest.raises(SourceError, match="this machine is no Debian system") as caught:
        fetched(tiny_engine(APT), "tiny=1.2.3-4", cache)
    assert caught.value.hint == "choose another source with --source"


# ---------------------------------------------------------------- what is installed


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="needs dpkg")
def test_an_installed_library_has_the_version_of_its_package(cache: Path) -> None:
    libc = {"kind": "system", "development": "libc6-dev"}
    ref = found(tiny_engine(libc), system.WORD, cache)
    asked = ["dpkg-query", "-W", "-f", "${Version}", "libc6-dev"]
    number = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert (ref.kind, ref.ref) == ("system", f"libc6-dev={number}")
    assert number.startswith(ref.version)
    tree = fetched(tiny_engine(libc), system.WORD, cache)
    assert list(tree.path.iterdir()) == []


def test_a_library_that_is_not_installed_names_its_package(cache: Path) -> None:
    engine = tiny_engine({"kind": "system", "development": "libtiny-dev"})
    with pytest.raises(SourceError, match="libtiny-dev is not installed"):
        found(engine, system.WORD, cache)
    assert list_versions(engine).notes == ("system: libtiny-dev is not installed",)
