"""What a data scientist types: it works, or one line says what to write.

Expected: what the command line says of the same files; errors of a prediction that nothing scales,
by hand; else the words, which are regression only.
"""

import ast
import json
import re
import warnings
from collections.abc import Callable
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command import Cli
from synthetic import kernels as made
from synthetic.two_logs import log

import mlscale as ms
from mlscale.data.datasets import path
from mlscale.errors import InputError
from mlscale.parameters import in_options, parameter
from mlscale.studies.study import study

NCU = str(path("h100-by-hand.csv"))
CHEAP: dict[str, Any] = {"features": ["raw"], "seeds": 1, "jobs": 1}


@cache
def names() -> dict[str, Any]:
    """What the guesses call things."""
    table = made.measurements(power=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        profiles = ms.import_profile(NCU)
    model = ms.train(table, "mid", "nearest")
    frame = table.to_frame()
    given = {"ncu": NCU, "profiles": profiles, "data": table, "df": frame}
    given["of_16"] = frame[frame["cu_count"] == 16].drop(columns="cu_count")
    profile = table.profiles("mid")
    more = {"errors": ms.cross_validate("nearest", table, **CHEAP), "a": ms.advise(NCU)}
    return {"ms": ms, "pd": pd, **given, "model": model, "at_mid": profile, **more}


# By what is typed, what the one line says; nothing where it works.
GUESSES = {
    # Notebook A: the answer.
    "ms.advise(ncu, max_slowdown=5)": "",
    "ms.advise([ncu])": "",
    "ms.advise(profiles)": "",
    "ms.advise(ncu, model='kernels', minimize='clock')": "",
    "ms.advise(ncu, model=ms.load('kernels'))": "",
    "ms.advise(ncu, device='H100 SXM5', base={'engine': 1980, 'memory': 2619})": "",
    "ms.advise(ncu, base='engine=1980,memory=2619')": "",
    "ms.advise(ncu, power='500W', lever='cap', caps=[450, 500])": "",
    "ms.advise(df, model=model, minimize='time')": "",
    "ms.load('kernels')": "",
    "ms.import_profile(ncu)": "",
    "a.best.engine_mhz, a.expected, a.sure, a.notes, a.menu, a.commands.set, a.commands.reset": "",
    "a.document(), a.to_dict(), a.frame.head(3), repr(a), str(a), a._repr_html_(), a.plot()": "",
    "ms.devices().query('cu_count > 100')": "",
    "ms.load('nvidia-time')": "it is called 'kernels'",
    "ms.load('nonesuch')": "the shipped models are ",
    "ms.advise(model, profiles)": "write advise(run, model=model)",
    "ms.advise('my.mlscale', ncu)": "write advise(run, model=model)",
    "ms.advise()": "advise takes the run first",
    "ms.advise(profiles, objective='clock')": "has no 'objective'; write minimize=",
    "ms.advise(profiles, limits=5)": "write max_slowdown=, max_time= or max_power=",
    "ms.advise(ncu, max_slowdwn=5)": "did you mean 'max_slowdown'?",
    "ms.advise(profiles, power=500)": "mlscale.import_profile(file, power=500)",
    "ms.advise(ncu, profiles)": "several files, or one data frame, or one Profiles",
    "ms.advise({'time_ms': 1})": "a file or a pandas DataFrame, not of type dict",
    "ms.advise(ncu, minimize='energy')": "the profile has no power_w; give power=",
    "ms.advise(ncu, lever='fan')": "the lever is 'clock' or 'cap'",
    "ms.advise(ncu, rate=(1, 2))": "rate= has 2 numbers for 1 runs",
    "a.verdict": "an answer has no 'verdict'; print it, or take its best, expected",
    "a.save('answer.pdf')": "an answer is saved as .html, .json or .csv",
    "a.commands()": "write .commands.set or .commands.reset",
    "ms.report(ncu)": "write mlscale.advise(run).save('page.html')",
    "a.summary()": "print it, or take its best",
    "a.engine_mhz": "write answer.best.engine_mhz",
    "ms.devices('h100')": "",
    "ms.devices('nonesuch')": "no GPU of the table matches 'nonesuch'",
    "ms.explain('P05')": "run 'mlscale explain P05' in a shell",
    "ms.optimize(ncu)": "write mlscale.advise(run, max_slowdown=5)",
    "ms.predicct(ncu)": "mlscale has no 'predicct'; did you mean 'predict'?",
    "ms.advise(ncu, engine=1200)": "advise has no 'engine'; write base={'engine': …}",
    # Notebook B: training and prediction.
    "ms.read(df)": "",
    "ms.read('h100-suite.csv'), ms.sklearn.to_xy": "",
    "ms.load('simulated-gcn3').predict('simulated-gcn3-profile.csv')": "",
    "ms.train(df, base='highest')": "",
    "ms.train(data, base='mid', predictor='nearest')": "",
    "ms.predict(ncu, at={'engine': [1200, 1400]}).frame": "",
    "ms.predict(ncu).at(engine_mhz=1200)": "",
    "ms.predict(df, model=model).plot()": "",
    "model.predict(at_mid, at='engine=600').frame": "",
    "model.predict(df, at={'cu': [4, 8], 'engine_mhz': 600})": "",
    "model.predict(at_mid).at(engine_mhz=600, cu_count=16, memory_mhz=700)": "",
    "model.predict(at_mid).plot()": "",
    "model.errors(df)": "",
    "model.score(df)": "a model has no 'score'; write model.errors(table)",
    "ms.Model.load('kernels')": "",
    "ms.load_model('kernels')": "load a model with mlscale.load(path)",
    "ms.read_csv('t.csv')": "mlscale has no 'read_csv'; read a table with mlscale.read(path)",
    "ms.datasets()": "'mlscale datasets list' lists them",
    "ms.fit(df)": "train a model with mlscale.train(table, predictor='wu')",
    "model.fit(df)": "train a model with mlscale.train(table, predictor='wu')",
    "model.predict_interval(at_mid)": "write model.predict(run, coverage=0.9)",
    "model.predict(at_mid, return_std=True)": "write coverage=0.9 in model.predict",
    "model.summary()": "print it, or take its errors(table)",
    "model.predict(at_mid).to_pandas()": "take .frame, a pandas DataFrame",
    "model.predict(at_mid).to_csv('t.csv')": "write predictions.frame.to_csv(path)",
    "at_mid.summary()": "take .kernels, .base, .time_ms",
    "ms.train(df, 'wu')": "write predictor='wu'",
    "ms.train(df, 'mid', 'wu', n_clusters=4)": "no hyper-parameter 'n_clusters'; write clusters=",
    "ms.Wu(random_state=0)": "no hyper-parameter 'random_state'; write seed=",
    "ms.Nearest(random_state=0)": "it has quantity, features, neighbours",
    "ms.train(df, 'mid', test_size=0.2)": "write mlscale.cross_validate('wu', table)",
    "ms.cross_validate(data, 'nearest')": "write cross_validate('nearest', tables)",
    "ms.cross_validate('nearest', data, cv=5)": "no option 'cv'; write folds=",
    "ms.cross_validate('nearest', df, base='mid', features=['raw'], seeds=1, jobs=1).frame": "",
    "data.head()": "to_frame() gives their rows as a pandas DataFrame",
    "data.shape": "to_frame() gives their rows as a pandas DataFrame",
    "model.predict(at_mid, engine_mhz=600)": "write at={'engine': …}",
    "ms.predict(ncu, engine_mhz=600)": "write at={'engine': …}",
    "model.predict({'VALUBusy': 50})": "a dict is not a profile; make a data frame of it",
    "model.predict(at_mid, at=600)": "600 of what? Write {'engine': 600}",
    "model.predict(at_mid, at={'clock': 600})": "'clock' is not a setting; use cu, engine",
    "model.predict(at_mid).at(engine_mhz=5000)": "unless asked to (extrapolate=True)",
    "ms.predict(model, at_mid)": "write predict(run, model=model)",
    "ms.save('x.mlscale', model)": "mlscale.save(model, 'my.mlscale')",
    "ms.load(ncu)": "is a table or log, not an mlscale model; advice on it: mlscale.advise(FILE)",
    "ms.train(df, 'mid', leave_out='a')": "leave its rows out of the table: mlscale.train(frame[",
    "ms.cross_validate(data)": "write mlscale.cross_validate('wu', tables)",
    "errors.to_pandas()": "print them, or take .frame, a pandas DataFrame",
    "errors.summary()": "print them, or take .frame, a pandas DataFrame",
    "errors.plot('x.png')": "write .plot().savefig('x.png')",
    "a.plot('x.png')": "write .plot().savefig('x.png')",
    "model.predict(at_mid).plot('x.png')": "write .plot().savefig('x.png')",
    "model.predict(at_mid)['energy']": "predictions have no 'energy'; write predictions.energy_mj",
    "ms.read_profiles(df)": "write mlscale.read_profiles(path, model.base, model.device)",
    "ms.import_profile(ncu, columns={'time_ms': 't'})": "of a table mlscale.predict(path, columns=",
    # A base, and the number of CUs for all rows.
    "ms.train(data, {'cu': 16, 'engine': 600, 'memory_mhz': 700}, 'nearest')": "",
    "ms.train(data, {'engine': 600})": "'engine=600' gives no cu_count; one of 4, 8, 16",
    "ms.train(data, [1400, 700])": "[1400, 700] is not a configuration; write {'engine': 1200}",
    "ms.train(data, 1000)": "1000 is not a configuration; write {'engine': 1200}",
    "ms.cross_validate('nearest', data, base={'clock': 6})": "'clock' is not a setting; use cu,",
    "ms.advise(ncu, base=1980)": "1980 of what? Write {'engine': 1980}",
    "ms.import_profile(ncu, base={'engine': 1980, 'memory': 2619})": "",
    "ms.import_profile(ncu, base='engine=1980,memory=2619')": "",
    "ms.read_profiles(df, {'cu': 16, 'engine': 600, 'memory': 700}, 'made-gpu')": "",
    "ms.read_profiles(df, 'engine=600', 'made-gpu')": "gives no cu_count and no memory_mhz",
    "ms.read(of_16, columns={'cu_count': '16'})": "",
    "ms.read(of_16, columns={'cu_count': 'N'})": "no column 'N'; give a column, or a number for",
    "ms.study('errors', data, 'nearest')": "write mlscale.cross_validate(predictors, tables)",
}


@pytest.mark.parametrize("typed", GUESSES)
def test_a_guess_works_or_one_line_says_what_to_write(typed: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ms.DataWarning)
        if not GUESSES[typed]:
            eval(typed, names())
            return
        with pytest.raises(
            (InputError, AttributeError, KeyError), match=re.escape(GUESSES[typed])
        ) as told:
            eval(typed, names())
    assert len(str(told.value).splitlines()) == 1
    assert "--" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "value", "keyword", "option"),
    [
        ("base", "engine=…", "base='engine=…'", "--base engine=…"),
        ("base", "engine=1,memory=2", "base='engine=1,memory=2'", "--base engine=1,memory=2"),
        ("gpu", "", "gpu=", "--gpu"),
        ("force", "", "force=True", "--force"),
        ("interval_s", "SECONDS", "interval_s=SECONDS", "--interval SECONDS"),
        ("max_power", "500", "max_power=500", "--max-power 500"),
        ("notes", "", ".notes", "--notes"),
        ("columns", {"kernel": "Kernel Name"}, "columns={'kernel': 'Kernel Name'}",
         "--map 'kernel=Kernel Name'"),
    ],
)  # fmt: skip
def test_a_parameter_is_spelled_as_where_it_is_given(
    name: str, value: str | dict[str, str], keyword: str, option: str
) -> None:
    assert parameter(name, value) == keyword
    with in_options():
        assert parameter(name, value) == option
    assert parameter(name, value) == keyword


def test_warnings_speak_python() -> None:
    """As of the line that asked, here one of this file."""
    with pytest.warns(ms.DataWarning, match="if it was set to another, give base='engine=") as told:
        ms.import_profile(NCU)
    assert told[0].filename == __file__
    with pytest.warns(ms.DataWarning, match="the base is the highest .* or give base="):
        assert ms.train(names()["data"], predictor="nearest").base == made.GRID.highest


class TestAnswer:
    @pytest.mark.parametrize(
        "given",
        [{"max_slowdown": 5}, {"power": 500}, {"max_slowdown": 3, "power": 500, "lever": "cap"}],
    )
    def test_is_that_of_the_command(self, cli: Cli, given: dict[str, Any]) -> None:
        options = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
        told = cli("advise", NCU, *options, "--json", "--commands")
        answer = ms.advise(NCU, **given)
        of_command, document = json.loads(told), dict(answer.document())
        for in_words in ("notes", "next", "next_commands"):
            del of_command[in_words], document[in_words]
        assert document == of_command

    def test_its_numbers_agree(self) -> None:
        """Energy is time x power, and changes are against the base."""
        answer = ms.advise(NCU, power=500, max_slowdown=5)
        best, run = answer.best, answer.document()["run"]
        assert best.set == {"engine_mhz": best.engine_mhz}
        assert best.time_ms == pytest.approx(run["time_ms"] * (1 + best.slowdown_percent / 100))
        assert best.power_w is not None
        assert best.energy_mj == pytest.approx(best.time_ms * best.power_w)
        energy_percent = 100 * (best.energy_mj / run["energy_mj"] - 1)
        assert best.energy_percent == pytest.approx(energy_percent)
        assert answer.frame["share_percent"].sum() == pytest.approx(100)
        assert answer.frame["share_percent"].is_monotonic_decreasing

    def test_its_document_survives_a_file(self, tmp_path: Path) -> None:
        answer = ms.advise(NCU, power=500, max_slowdown=5)
        for name in ("a.html", "a.json", "a.csv"):
            answer.save(tmp_path / name)
        document = json.loads((tmp_path / "a.json").read_text("utf-8"))
        assert document == answer.document()
        assert document["schema"] == 1
        value, low, high = document["answer"]["slowdown_percent"]
        assert (value, (low, high)) == (answer.best.slowdown_percent, answer.best.slowdown_range)
        table = pd.read_csv(tmp_path / "a.csv")
        assert (table["at"] == "answer").sum() == 1 + len(answer.frame)
        assert (tmp_path / "a.html").read_text("utf-8").startswith("<!DOCTYPE html>")

    def test_a_frame_is_what_its_file_is(self, tmp_path: Path) -> None:
        names()["df"].to_csv(tmp_path / "t.csv", index=False)
        given = {"model": names()["model"], "minimize": "time"}
        frame, file = (ms.advise(run, **given) for run in (names()["df"], tmp_path / "t.csv"))
        assert frame.best == file.best

    def test_rates_are_times(self, tmp_path: Path) -> None:
        """A million units at 2400 and 2250 a second take 416.7 s and 444.4 s."""
        fast = log(tmp_path / "fast.csv", 1755, 100, 480)
        slow = log(tmp_path / "slow.csv", 1170, 100, 300)
        answer = ms.advise(fast, also=slow, rate=(2400, 2250), max_slowdown=10)
        document = answer.document()
        assert document["run"]["time_ms"] == pytest.approx(1e9 / 2400)
        [at_slow] = document["measured"]
        assert at_slow["time_ms"][0] == pytest.approx(1e9 / 2250)
        assert "1,000,000 units of work" in " ".join(note.text for note in answer.notes)
        assert "\n  1,000,000 units of work, 417 s " in str(answer)

    def test_names_are_escaped(self) -> None:
        data = made.measurements(per_group=1, power=False)
        frame = data.to_frame().replace(data.kernels[0], "<script>alert(1)</script>")
        answer = ms.advise(frame, model=ms.train(frame, "mid", "nearest"), minimize="time")
        assert "<script" not in answer._repr_html_()
        assert "&lt;script" in answer._repr_html_()


@pytest.mark.parametrize(
    ("draw", "panels"),
    [
        (lambda: ms.advise(NCU).plot(), 1),
        (lambda: ms.advise(NCU, power=500).plot(), 2),
        (lambda: ms.predict(NCU).plot(), 1),
        (lambda: ms.predict(NCU, power=500).plot(), 3),
        (lambda: ms.cross_validate("nearest", made.measurements(), **CHEAP).plot(), 2),
    ],
    ids=["time", "time and energy", "predicted", "with power", "errors of time and power"],
)
def test_a_plot_has_a_panel_for_each_quantity(draw: Callable[[], Any], panels: int) -> None:
    assert len(draw().axes) == panels


def test_predictions_are_of_what_was_asked() -> None:
    predictions = ms.predict(NCU, at={"engine": [1200, 1400]})
    assert sorted(set(predictions.frame["engine_mhz"])) == [1200, 1400]
    assert set(predictions.at(engine_mhz=1400).frame["engine_mhz"]) == {1400}


@pytest.mark.parametrize("function", [ms.advise, ms.predict])
def test_what_a_call_may_name_is_shown(function: Callable[..., Any]) -> None:
    """By completion and help()."""
    assert {"also", "power", "device", "base", "model", "rate"} <= signature(
        function
    ).parameters.keys()


def test_a_folder_of_the_package_takes_no_guess(tmp_path: Path) -> None:
    """A module that is imported becomes an attribute of the package."""
    names()["a"].save(tmp_path / "page.html")
    for name in ("report", "datasets", "explain", "fit"):
        assert not hasattr(ms, name)


def test_errors_of_a_model_are_the_mean_ones() -> None:
    """Of a predictor for which nothing scales: |1 / factor - 1|, but at the base."""
    data = made.measurements(power=False)
    factors = data.relative("time", "mid").reshape(len(data.kernels), -1)
    beside = np.delete(factors, made.GRID.position("mid"), axis=1)
    errors = ms.train(data, "mid", "no-scaling").errors(data.to_frame())
    assert errors == pytest.approx({"time": 100 * np.abs(1 / beside - 1).mean()})


def test_the_columns_that_a_message_says_are_taken_wherever_a_table_is(tmp_path: Path) -> None:
    """As the message has them; the model is that of the table with our names."""
    data = made.measurements()
    called = {"device": "gpu", "engine_mhz": "core clock (MHz)", "time_ms": "duration (us)"}
    frame = data.to_frame().rename(columns={**called, "power_w": "avg power (mW)"})
    frame[["duration (us)", "avg power (mW)"]] *= 1000
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError) as told:
        ms.train(frame)
    columns = ast.literal_eval(str(told.value).partition("columns=")[2])
    model, expected = (
        ms.train(frame, "mid", "nearest", columns=columns),
        ms.train(data, "mid", "nearest"),
    )
    assert [*model.predictors] == ["time", "power"]
    profile = frame.rename(columns={"kernel": "kernel name"})
    with pytest.raises(InputError, match="'kernel': 'kernel name', 'engine_mhz': 'core clock"):
        model.predict(profile)
    errors = ms.cross_validate("nearest", data, **CHEAP).frame["mape"]
    for table in (frame, tmp_path / "t.csv"):
        predicted = model.predict(table, at="engine=600", columns=columns).frame
        of_ours = expected.predict(data.to_frame(), at="engine=600").frame
        pd.testing.assert_frame_equal(predicted, of_ours)
        assert len(ms.predict(table, model=model, columns=columns).frame)
        assert model.errors(table, columns=columns) == pytest.approx(expected.errors(data))
        of_table = ms.cross_validate("nearest", table, columns=columns, **CHEAP).frame["mape"]
        assert of_table.tolist() == pytest.approx(errors.tolist())


def test_cross_validation_is_the_study() -> None:
    data = made.measurements(power=False)
    frame, expected = (
        ms.cross_validate("nearest", data, **CHEAP).frame,
        study("errors", data, "nearest", **CHEAP),
    )
    told = [name for name in expected if "seconds" not in name]
    pd.testing.assert_frame_equal(frame[told], expected[told])
