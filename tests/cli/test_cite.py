"""mlscale cite: every name has its references, as text and as BibTeX; facts from the papers."""

import re
from pathlib import Path

import pytest
from command import Capture, refuse, succeed, train
from synthetic import tidy

from mlscale.cli.literature.command import MODELS
from mlscale.data.public.registry import public_datasets
from mlscale.papers.citations import citable_names, references_of
from mlscale.predictors import PREDICTORS

SHIPPED_OR_MADE = {
    *("simulated-gcn3", "hd7970"),
    *(f"headroom-{gpu}" for gpu in ("rtx5060ti", "rtx3070ti", "rtx3060", "rtx2060s")),
}


def keys(bibtex: str) -> list[str]:
    return re.findall(r"^@\w+\{(\w+),$", bibtex, flags=re.MULTILINE)


def test_every_predictor_model_and_data_set_has_an_entry() -> None:
    expected = {*PREDICTORS, *MODELS, *public_datasets(), *SHIPPED_OR_MADE}
    assert set(citable_names()) == expected


def test_every_reference_belongs_to_a_name(capsys: Capture) -> None:
    out, err = succeed(capsys, "cite", "--bibtex")
    of_each = {ref.key for name in citable_names() for ref, _ in references_of([name])}
    assert set(keys(out)) == of_each
    assert len(keys(out)) == len(of_each) >= 4
    assert err == ""


# The papers' own first pages and, for venue and pages, the papers that cite them.
@pytest.mark.parametrize(
    ("name", "facts"),
    [
        (
            "wu",
            ["Gene Wu, Joseph L. Greathouse", "and Derek Chiou", "(HPCA)", "2015", "564 to 576"],
        ),
        ("wang-chu", ["Qiang Wang and Xiaowen Chu.", "Core and Memory Frequency Scaling", "2018"]),
        ("survey", ["Vasily Volkov.", "PPoPP '18", "doi:10.1145/3178487.3178536", "S. Hong and"]),
        ("nagasaka", ["Hitoshi Nagasaka", "Satoshi Matsuoka.", "Green Computing", "115 to 122"]),
        ("simulated-gcn3", ["Sun et al.", "MGPUSim", "ISCA 2019"]),
        ("p100", ["https://github.com/blackjack2015/NV-DVFS-Benchmark"]),
    ],
)
def test_facts(capsys: Capture, name: str, facts: list[str]) -> None:
    out, _ = succeed(capsys, "cite", name)
    assert [fact for fact in facts if fact not in out] == []
    assert f"\n  for {name}\n" in out


def test_names_share_a_reference(capsys: Capture) -> None:
    out, _ = succeed(capsys, "cite", "hd7970", "wu", "wu", "nearest")
    assert out.count("Gene Wu") == 1
    assert "\n  for hd7970, wu\n" in out
    assert out.endswith("nothing to cite for nearest\n")


def test_bibtex(capsys: Capture) -> None:
    out, _ = succeed(capsys, "cite", "nagasaka", "nearest", "--bibtex")
    assert out == (
        "@inproceedings{nagasaka2010,\n"
        "  author = {Nagasaka, Hitoshi and Maruyama, Naoya and Nukada, Akira and Endo, Toshio "
        "and Matsuoka, Satoshi},\n"
        "  title = {{Statistical Power Modeling of GPU Kernels Using Performance Counters}},\n"
        "  booktitle = {2010 International Green Computing Conference},\n"
        "  publisher = {IEEE},\n"
        "  pages = {115--122},\n"
        "  year = {2010}\n"
        "}\n\n"
        "% nothing to cite for nearest\n"
    )


def test_bibtex_is_well_formed(capsys: Capture) -> None:
    out, _ = succeed(
        capsys, "cite", *[n for n in citable_names() if references_of([n])], "--bibtex"
    )
    entries = out.strip().split("\n\n")
    assert len(entries) == len(keys(out))
    for entry in entries:
        assert entry.count("{") == entry.count("}")
        fields = re.findall(r"^  (\w+) = \{.+\},?$", entry, flags=re.MULTILINE)
        assert len(fields) == len(entry.splitlines()) - 2
        assert {"author", "title"} <= set(fields)
        assert "&" not in entry  # BibTeX would need it escaped


class TestModelFile:
    def test_its_predictors(self, capsys: Capture, tmp_path: Path) -> None:
        model = train(capsys, tmp_path, tidy.rows(), "--predictor", "mean-surface")
        out, _ = succeed(capsys, "cite", model)
        assert out == "nothing to cite for mean-surface\n"

    def test_the_shipped_model(self, capsys: Capture) -> None:
        shipped, _ = succeed(capsys, "cite", "simulated-gcn3.mlscale")
        named, _ = succeed(capsys, "cite", "bottleneck")
        assert shipped == named

    def test_no_such_file(self, capsys: Capture, tmp_path: Path) -> None:
        message = refuse(capsys, tmp_path, "cite", tmp_path / "nothing.mlscale")
        assert message.endswith("nothing.mlscale: cannot be read: No such file or directory")

    def test_another_file(self, capsys: Capture, tmp_path: Path) -> None:
        table = tidy.write_csv(tmp_path / "table.csv", tidy.rows())
        assert "is not a whole mlscale model file" in refuse(capsys, tmp_path, "cite", table)


def test_an_unknown_name_is_told_the_known_ones(capsys: Capture, tmp_path: Path) -> None:
    message = refuse(capsys, tmp_path, "cite", "wu", "nagasaki")
    assert message.startswith("there is no predictor, model or data set 'nagasaki'; there are ")
    assert "wang-chu, max-overlap, survey, nagasaka" in message
    assert message.endswith("did you mean nagasaka?")
