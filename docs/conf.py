"""How Sphinx builds the documentation: Markdown pages, and the API from the docstrings.

`make docs` builds with -W and -n: every warning, broken link and unknown reference fails.
"""

from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import mlscale

project = "mlscale"
author = "the mlscale authors"
release = mlscale.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["sample-report.html"]
html_extra_path = ["sample-report.html"]
html_theme = "furo"
html_title = f"mlscale {release}"
html_copy_source = False

myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "show-inheritance": True}
python_use_unqualified_type_names = True
add_module_names = False

# Names of other libraries and of type variables: their documentation is elsewhere.
nitpick_ignore_regex = [
    (r"py:.*", r"(numpy|np|pandas|pd|pathlib|collections|typing|abc|argparse|os|sklearn)\b.*"),
    (r"py:.*", r"(Floats|Indices|Mask|NDArray|DataFrame|Path|ABC|Any|ClassVar|Self|optional)"),
]


def find_public(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.TextElement
) -> Any:
    """A reference to where a class is defined leads to its entry under its public name."""
    name = node.get("reftarget", "").rpartition(".")[2]
    domain = env.get_domain("py")
    homes = [full for full in domain.objects if full.rpartition(".")[2] == name]
    if len(homes) != 1:
        return None
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, "obj", homes[0], node, text
    )


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("missing-reference", find_public)
