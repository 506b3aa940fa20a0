"""Kernel names of two tools; made names are written as the tools write them, matches by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlscale.readers.names import bare, common_names, plain, unscoped

IDENTIFIERS = st.text("abk_19", min_size=1, max_size=8).map(lambda name: f"k{name}")
TYPES = st.sampled_from(["int", "float *", "const half *", "unsigned int", "n::Op<float>"])
WRITINGS = [  # of one kernel: CUDA's demangler, the C++ library's, and others
    "void at::native::(anonymous namespace)::v<(int)4, F<(bool)1>, S<char *, (long)1>>(int)",
    "void at::native::(anonymous namespace)::v<4, F<true>, S<char*, 1l> >(int)",
    "at::native::<unnamed>::v<4, F<true>, S<char*, 1>>(int) [clone .kd]",
    "void at::native::<unnamed>::v<(int)4, F<(bool)1>, S<char *, (unsigned long)1>>(int) [37]",
]
LAMBDAS = [
    "void g<(int)8, void n::h<n::s(T &)::[lambda() (instance 2)]::operator ()() const>>(const T *)",
    "void g<8, n::h<n::s(T&)::{lambda()#2}::operator()() const> >(T const*)",
]


@st.composite
def signatures(draw: st.DrawFn) -> tuple[str, str, str]:
    """Scope and function, templates, arguments."""
    scope = "".join(f"{name}::" for name in draw(st.lists(IDENTIFIERS, max_size=2)))
    templates = draw(st.lists(TYPES | st.sampled_from(["(int)4", "(bool)0"]), max_size=3))
    arguments = ", ".join(draw(st.lists(TYPES, max_size=3)))
    listed = f"<{', '.join(templates)}>" if templates else ""
    return scope + draw(IDENTIFIERS), listed, f"({arguments})"


@given(signature=signatures())
def test_at_each_shortening_it_is_the_only_kernel_of_its_function(
    signature: tuple[str, str, str],
) -> None:
    function, templates, arguments = signature
    whole = f"void {function}{templates}{arguments}"
    base = function.rpartition("::")[2]
    shortenings = [
        f"{function}{templates}{arguments}".replace(" *", "*").replace(", ", ","),
        f"{function}{templates}",
        f"{base}{templates}",
        base,
    ]
    for short in shortenings:
        assert common_names([whole], [short]) == {short: whole}
        assert common_names([short], [whole]) == {whole: short}
    assert bare(whole) == base
    assert unscoped(whole) == plain(f"{base}{templates}")


@given(signature=signatures(), types=st.lists(TYPES, min_size=2, max_size=2, unique=True))
def test_variants_are_never_taken_for_each_other(
    signature: tuple[str, str, str], types: list[str]
) -> None:
    function, _, arguments = signature
    one, other = (f"void {function}<{name}>{arguments}" for name in types)
    assert common_names([one], [other]) == {}
    assert common_names([one, other], [other]) == {other: other}
    assert common_names([one, other], [function.rpartition("::")[2]]) == {}


@pytest.mark.parametrize("one", WRITINGS)
@pytest.mark.parametrize("other", WRITINGS)
def test_as_each_tool_writes_it(one: str, other: str) -> None:
    assert plain(one) == plain(other)
    assert common_names([one], [other]) == {other: one}


def test_lambdas() -> None:
    assert plain(LAMBDAS[0]) == plain(LAMBDAS[1])


@pytest.mark.parametrize(
    ("counted", "traced", "same"),
    [
        # CUDA's demangler writes T1 where the C++ library writes the type.
        (["void f<(int)4, A>(int, T2)", "void f<(int)4, B>(int, T2)"],
         ["void f<4, B>(int, B)", "void f<4, C>(int, C)"], {1: 0}),
        (["f<int>(int)", "g"], ["f<int>(int)", "f", "void g"], {0: 0, 1: 2}),
        (["void n::f<Op<int>>(T1::Params)"], ["void f<Op<int>>(Params)"], {0: 0}),
        (["a::f(int)"], ["b::f(int)"], {}),
        (["f<int>(int)", "f<int>(float)"], ["f<int>(T1)"], {}),  # ambiguous
        (["f<int>", "f<float>"], ["f"], {}),
        (["f(int)"], ["_Z1fi"], {}),  # mangled
    ],
)  # fmt: skip
def test_finest_agreement_counts(
    counted: list[str], traced: list[str], same: dict[int, int]
) -> None:
    expected = {traced[other]: counted[one] for one, other in same.items()}
    assert common_names(counted, traced) == expected


@given(name=st.text(max_size=40))
def test_of_any_text_is_itself(name: str) -> None:
    assert common_names([name], [name]) == {name: name}
