"""Sphinx configuration of the site: the Markdown pages, and the API from the docstrings.

The source folder is the root of the repository, so that a link from one file to another means the
same on the site as wherever the files are read: `sphinx-build -c docs . build/docs`.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from sphinx.application import Sphinx

import bitweigh

ROOT = Path(__file__).parent.parent

project = "bitweigh"
author = "The bitweigh developers"
project_copyright = author
version = release = bitweigh.__version__

root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "docs/reference/**.rst",
    "*.md",
    "cpp/engine/**.md",
]
exclude_patterns = [
    ".*",
    "benchmarks",
    "build",
    "dist",
    "experiments",
    "src",
    "tests",
    "tools",
]
if importlib.util.find_spec("sklearn") is None:
    exclude_patterns.append("docs/reference/sklearn.rst")  # the module cannot be imported

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
myst_heading_anchors = 4
# Blocks without a language are diagrams, formulas and output.
highlight_language = "none"
default_role = "py:obj"
smartquotes = False
autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
# Types stay as written: "(n_bits, 2)" is a shape, not two names to link.
napoleon_custom_sections = [("Parameters", "params_style"), ("Attributes", "params_style")]
napoleon_use_rtype = False
add_module_names = False
# Without network, names of other projects cannot be looked up; only bitweigh's names are checked.
nitpick_ignore_regex = [(r"py:.*", r"(?!bitweigh\.).*")]

html_theme = "furo"
html_title = "bitweigh"
html_static_path = ["_static"]
html_css_files = ["site.css"]
templates_path = ["_templates"]
html_additional_pages = {"index": "to_the_map.html"}
html_copy_source = False
html_show_sphinx = False


def add_toctrees(_: Sphinx, docname: str, source: list[str]) -> None:
    """Add a toctree to the index page for each of its tables of pages, under the table's heading.

    Written into the page they would stand there as code wherever it is read as plain Markdown.
    """
    if docname != root_doc:
        return
    for section in re.split(r"^## ", source[0], flags=re.MULTILINE)[1:]:
        pages = re.findall(r"^\| \[(.+?)\]\(([^)#]+)\)", section, re.MULTILINE)
        if pages:
            entries = "\n".join(f"{title} <{page}>" for title, page in pages)
            caption = section.partition("\n")[0]
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{entries}\n```\n"


def name_links_by_title(_: Sphinx, docname: str, source: list[str]) -> None:
    """Replace the text of links named after their file, ``[costs.md](costs.md)``, by the title."""
    folder = (ROOT / docname).parent

    def titled(link: re.Match[str]) -> str:
        page = folder / link["target"]
        title = re.search(r"^# (.+)", page.read_text(), re.MULTILINE) if page.exists() else None
        return f"[{title[1]}]({link['target']}{link['place']})" if title else link[0]

    link = r"\[(?P<name>[\w./-]+\.md)\]\((?P<target>(?:\.\./)*(?P=name))(?P<place>#[^)]*|)\)"
    source[0] = re.sub(link, titled, source[0])


def rejoin_sentences(
    _: Sphinx, what: str, _name: str, _thing: object, _options: object, lines: list[str]
) -> None:
    """Rejoin the sentence of an attribute: napoleon mistakes the text before a colon for a type."""
    types = [line for line in lines if line.startswith(":type: ")]
    if what in {"attribute", "property", "data"} and types:
        lines[0] = f"{types[0].removeprefix(':type: ')}: {lines[0]}"
        lines.remove(types[0])


def setup(app: Sphinx) -> None:
    """Connect the functions above; Sphinx calls this."""
    app.connect("source-read", name_links_by_title)
    app.connect("source-read", add_toctrees)
    app.connect("autodoc-process-docstring", rejoin_sentences, priority=900)  # after napoleon
