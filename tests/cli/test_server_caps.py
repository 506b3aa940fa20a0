"""mlscale advise --lever cap of an LLM server: two power caps, and logs without clocks.

Truth: synthetic.llm_server serves the same requests at every clock.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from command import Cli
from server_commands import HIGH, LOW, SERVER, Words, document, write
from synthetic import llm_server as made

import mlscale


@pytest.fixture(scope="module")
def capped(tmp_path_factory: pytest.TempPathFactory) -> Words:
    """The words of a command: 64 clients under the watts of two clocks."""
    words = write(tmp_path_factory.mktemp("capped"), np.inf, clients=64, count=200)
    for place, seed, mhz in ((2, 0, HIGH), (5, 1, LOW)):
        watts = made.serve(SERVER, mhz, np.inf, 200, 64, seed).power_w
        words[place] = str(made.without_clocks(Path(words[place]), watts))
    return [*words, "--lever", "cap"]


class TestPowerCaps:
    """Two caps and no clocks: of each reading as much as it drew, as made.serve has it."""

    def test_between_them_it_is_as_in_truth(self, cli: Cli, capped: Words) -> None:
        """At 1650 MHz it draws a power between the two, and that cap would give this clock."""
        found = document(cli, *capped)
        caps = found["server"]["clocks"]
        true = made.serve(SERVER, 1650.0, np.inf, 200, 64, 7)
        told = made.result(true)
        cap = min(caps, key=lambda one: abs(one["power_w"][0] - true.power_w))
        assert cap["engine_mhz"] is None
        assert cap["power_cap_w"] == pytest.approx(true.power_w, abs=3)
        for name, value in cap["latency_ms"].items():
            metric, statistic = name.split()
            assert value[1] <= told[f"{statistic}_{metric}_ms"] <= value[2]
            near = 0.1 if metric == "ttft" else 0.04
            assert value[0] == pytest.approx(told[f"{statistic}_{metric}_ms"], rel=near)
        rate = float(str(told["output_throughput"]))
        _, low, high = cap["tokens_per_joule"]
        assert cap["output_per_s"] == pytest.approx(rate, rel=0.03)
        assert low <= rate / true.power_w <= high
        assert found["answer"]["set"] == {"power_cap_w": caps[-1]["power_cap_w"]}
        assert found["sure_why"] == ["S08"]

    def test_a_limit_is_kept_by_the_upper_end(self, cli: Cli, capped: Words) -> None:
        slo = ("--slo", "tpot=1.25x@p50")
        found = document(cli, *capped, *slo)
        [most] = (limit["limit_ms"] for limit in found["server"]["limits"])
        by_cap = {one["power_cap_w"]: one for one in found["server"]["clocks"]}
        chosen = [by_cap[found[name]["set"]["power_cap_w"]] for name in ("answer", "expected")]
        assert chosen[0]["latency_ms"]["tpot p50"][2] <= most
        assert chosen[1]["latency_ms"]["tpot p50"][0] <= most
        out = cli(*capped, *slo, "--commands")
        assert f"Set the power cap to {chosen[0]['power_cap_w']:g} W (now " in out
        assert f"nvidia-smi -i 0 -pl {chosen[0]['power_cap_w']:g}\n" in out

    def test_python_and_the_page_have_them(self, cli: Cli, capped: Words, tmp_path: Path) -> None:
        fast, log, slow, slow_log = (word for word in capped[1:6] if word != "--also")
        answer = mlscale.advise(fast, log, also=(slow, slow_log), lever="cap")
        assert answer.best.set == document(cli, *capped)["answer"]["set"]
        assert answer.frame["power_cap_w"].is_monotonic_decreasing
        cli("report", *capped[1:], "-o", str(tmp_path / "page.html"))
        text = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert f"<h1>Set {answer.best.set['power_cap_w']:g} W: " in text

    def test_what_shows_no_two_caps_is_refused(
        self, cli: Cli, capped: Words, tmp_path: Path
    ) -> None:
        def refused(*logs: Path, results: Words = capped) -> str:
            first, second = map(str, logs)
            return cli.refused(*results[:2], first, *results[3:5], second, "--lever", "cap")

        words, log, slow = write(tmp_path), Path(capped[2]), Path(capped[5])
        alike = tmp_path / "alike.csv"
        alike.write_text(log.read_text("utf-8"), encoding="utf-8")
        assert "too close; run one at two thirds" in refused(log, alike)
        lines = slow.read_text("utf-8").splitlines()
        bare = tmp_path / "bare.csv"
        bare.write_text("\n".join(row.rpartition(",")[0] for row in lines), encoding="utf-8")
        assert "does not show its power limit (power.limit)" in refused(log, bare)
        low, rows = tmp_path / "low.csv", log.read_text("utf-8").splitlines()
        under = [re.sub(r"[\d.]+ W$", "300 W", row) for row in rows]
        low.write_text("\n".join(under), encoding="utf-8")
        assert "the lower cap hardly changes anything; run it under about" in refused(log, low)
        told = cli.refused(*capped, "--base", "engine=334")
        assert "--base engine=334: a power cap is advised without any clock; omit it" in told
        loose = made.without_clocks(Path(words[2]), 700)
        tight = made.without_clocks(Path(words[5]), 600)
        told = refused(loose, tight, results=words)
        assert "requests come at a rate" in told
        assert "swapped" not in told
