"""mlscale advise of an LLM server with several numbers of clients, at two clocks each.

Truth: synthetic.llm_server serves the same requests at every clock.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from command import Cli
from report_pages import runs_of
from server_commands import HIGH, LOW, SERVER, Words, document, write
from synthetic import llm_server as made

PAGE = Path(__file__).parents[2] / "docs/howto/servers.md"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Words:
    """Two clocks with 8 clients, and with 32."""
    found = ["advise"]
    for clients in (8, 32):
        folder = tmp_path_factory.mktemp(f"with-{clients}")
        found += [*write(folder, np.inf, clients=clients, count=200)[1:], "--also"]
    return found[:-1]


class TestNumbersOfClients:
    """Two clocks with 8 clients and with 32, and what lies between."""

    def test_cells_between_are_near_what_is_served(self, cli: Cli, asked: Words) -> None:
        """A server with 16 clients, as made.serve has it, within 10 % and the interval."""
        cells = document(cli, *asked)["server"]["loads"]
        assert sorted({cell["clients"] for cell in cells}) == [8, 16, 32]
        for mhz in (HIGH, LOW):
            run = made.serve(SERVER, mhz, np.inf, 200, 16)
            rate = float(str(made.result(run)["output_throughput"]))
            [cell] = [c for c in cells if (c["clients"], c["engine_mhz"]) == (16, mhz)]
            _, low, high = cell["tokens_per_joule"]
            assert cell["output_per_s"][0] == pytest.approx(rate, rel=0.1)
            assert low < rate / run.power_w < high
            assert not cell["is_measured"]

    def test_latencies_and_the_answer_are_of_the_first(self, cli: Cli, asked: Words) -> None:
        alone = document(cli, *asked[:6])
        assert document(cli, *asked)["answer"] == alone["answer"]

    def test_text_and_csv_have_them(self, cli: Cli, asked: Words) -> None:
        out = cli(*asked)
        assert "Tokens/J by number of clients" in out
        assert re.search(r"\n +MHz +8 +16 +32\n +1980 ", out)
        assert max(map(len, out.splitlines())) <= 80
        head, *rows = cli(*asked, "--format", "csv").splitlines()
        assert head.startswith("clients,engine_mhz,is_measured,output_per_s,")
        assert {row.split(",")[0] for row in rows} == {"8.0", "16.0", "32.0"}

    def test_they_are_those_of_the_example(self, cli: Cli, asked: Words) -> None:
        """docs/howto/servers.md shows this server; numbers may differ in their last digit."""
        shown, found = (
            [
                re.findall(r"[.\d]+", row)
                for row in text.partition("Tokens/J by")[2].split("\n")[2:10]
            ]
            for text in (PAGE.read_text("utf-8"), cli(*asked))
        )
        assert shown[0] == found[0] == ["8", "16", "32"]
        for ours, theirs in zip(shown, found, strict=True):
            assert [float(one) for one in ours] == pytest.approx(
                [float(one) for one in theirs], rel=0.006, abs=1
            )

    def test_the_page_has_them(self, cli: Cli, asked: Words, tmp_path: Path) -> None:
        """The head by hand from the document; without scripts a row for each clock."""
        file, found = tmp_path / "page.html", document(cli, *asked, "--commands")
        assert "45 clocks" in cli("report", *asked[1:], "-o", str(file))
        text = file.read_text(encoding="utf-8")
        assert runs_of(text)[0]["document"] == found
        (low, high), best = (found["server"]["clocks"][k] for k in (-1, 0)), found["answer"]
        more = 100 * (low["tokens_per_joule"][0] / high["tokens_per_joule"][0] - 1)
        assert best["at"]["engine_mhz"] == LOW
        assert f"<h1>Set 1320 MHz: {more:.0f} % more tokens per joule</h1>" in text
        assert "made/8B, closed load: 8 clients, the same 200 requests each on NVIDIA H100" in text
        assert text.count("<tr>") == 1 + len(found["server"]["clocks"])
        assert re.search(r"<tr><td>1965(<td>[\d.]+ \([\d.]+ to [\d.]+\)){5}", text)

    def test_other_servers_are_refused(self, cli: Cli, asked: Words, tmp_path: Path) -> None:
        changed = [*asked]
        for place in (7, 10):
            told = json.loads(Path(asked[place]).read_text("utf-8")) | {"model_id": "made/70B"}
            changed[place] = str(tmp_path / f"{place}.json")
            Path(changed[place]).write_text(json.dumps(told), encoding="utf-8")
        assert "give results of one server" in cli.refused(*changed)

    def test_other_clocks_are_refused(self, cli: Cli, asked: Words) -> None:
        """The logs of 32 clients say 990 and 1200 MHz, which lie below those of 8 clients."""
        changed = [*asked]
        for place, mhz in ((8, HIGH), (11, LOW)):
            log = Path(asked[place])
            changed[place] = str(log.with_name(f"low-{log.name}"))
            text = log.read_text("utf-8").replace(
                f" {mhz:g} MHz", f" {1200 if mhz == HIGH else 990} MHz"
            )
            Path(changed[place]).write_text(text, encoding="utf-8")
        assert "run each number of clients at the same two clocks" in cli.refused(*changed)
