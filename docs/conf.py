"""How Sphinx builds the documentation: Markdown, notebooks, and the API from the docstrings.

`make docs` builds with -W and -n: every warning, broken link and unknown reference fails.
"""

import importlib
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import mlscale

project = "mlscale"
author = "the mlscale authors"
release = mlscale.__version__

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))  # printed.py, generated.py

DOCS = Path(__file__).parent
shutil.rmtree(DOCS / "notebooks", ignore_errors=True)
shutil.copytree(DOCS.parent / "notebooks", DOCS / "notebooks")  # Sphinx reads one folder alone

extensions = [
    "myst_nb",
    "printed",
    "generated",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["sample-report.html", "decisions"]
html_extra_path = ["sample-report.html"]
html_theme = "furo"
html_title = f"mlscale {release}"
html_copy_source = False
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_math_renderer = "mathml"

nb_execution_mode = "off"  # tests/test_notebooks.py runs them and compares what they show
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "show-inheritance": True}
default_role = "literal"
smartquotes = False  # --also is an option, no dash
python_use_unqualified_type_names = True
add_module_names = False

# Names of other libraries and of type variables: their documentation is elsewhere.
nitpick_ignore_regex = [
    (r"py:class", r"tuple\[float"),  # Sphinx parts an interval's type at its comma
    (r"py:.*", r"(numpy|np|pandas|pd|pa|pathlib|collections|typing|abc|argparse|os|sklearn)\b.*"),
    (
        r"py:.*",
        r"(Floats|Indices|Mask|NDArray|Rates|DataFrame|Path|ABC|Any|ClassVar|Self|optional|Client|Figure|CapAdvice)",
    ),
]


def find_public(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.TextElement
) -> Any:
    """A reference to where a class is defined leads to its entry under its public name.

    A class of mlscale without an entry is shown as it is; a name that does not exist is an error.
    """
    home, _, name = node.get("reftarget", "").rpartition(".")
    python = env.get_domain("py")
    entries = [full for full in python.objects if full.rpartition(".")[2] == name]
    if len(entries) == 1:
        entry = entries[0]
        return python.resolve_xref(env, node["refdoc"], app.builder, "obj", entry, node, text)
    if home.startswith("mlscale.") and hasattr(importlib.import_module(home), name):
        return text
    return None


def as_the_site_has_it(app: Sphinx, page: str, text: list[str]) -> None:
    """Links from and to notebooks, which the repository keeps beside docs/, the site within."""
    text[0] = re.sub(r"\]\(((?:\.\./)*)notebooks/", r"](\1docs/notebooks/", text[0])
    if page.startswith("notebooks/"):
        text[0] = text[0].replace("](../docs/", "](../")


def in_included(app: Sphinx, file: Path, page: str, text: list[str]) -> None:
    """The same for what a page includes."""
    as_the_site_has_it(app, page, text)


def plain_text(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text: outside of backticks and examples no character is markup."""
    example = False
    for i, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if not example:
            pieces = line.split("`")
            pieces[::2] = [re.sub(r"([*|]|_\b)", r"\\\1", piece) for piece in pieces[::2]]
            lines[i] = "`".join(pieces)
    if what == "property":
        lines[:0] = ["..", ""]  # else napoleon takes what stands before a colon for a type


def write_mathml(html: Any, node: nodes.math | nodes.math_block) -> None:
    """Write an equation as MathML, which browsers show without a script from elsewhere."""
    as_block = isinstance(node, nodes.math_block)
    spaced = node.astext().replace(r"\log ", r"\log\,")  # docutils leaves none behind a name
    equation = tex2mathml(spaced, as_block=as_block)
    html.body.append(f'<div class="math">{equation}</div>' if as_block else equation)
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (write_mathml, None), (write_mathml, None))
    app.connect("source-read", as_the_site_has_it)
    app.connect("include-read", in_included)
    app.connect("autodoc-process-docstring", plain_text, priority=100)
    app.connect("missing-reference", find_public)
