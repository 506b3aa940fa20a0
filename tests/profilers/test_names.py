"""Kernel names of two tools matched; the made names are written as the tools write them.

Expected matches are by hand, or follow from how a name was shortened.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlscale.profilers.names import SameKernels, parts, plain, same_kernels

IDENTIFIERS = st.text("abk_19", min_size=1, max_size=8).map(lambda name: f"k{name}")
TYPES = st.sampled_from(["int", "float *", "const half *", "unsigned int", "n::Op<float>"])
WRITINGS = [  # of one kernel: CUDA's demangler, the C++ library's, and others
    "void at::native::(anonymous namespace)::v<(int)4, F<(bool)1>, S<char *, (long)1>>(int)",
    "void at::native::(anonymous namespace)::v<4, F<true>, S<char*, 1l> >(int)",
    "at::native::<unnamed>::v<4, F<true>, S<char*, 1>>(int) [clone .kd]",
    "void at::native::<unnamed>::v<(int)4, F<(bool)1>, S<char *, (unsigned long)1>>(int) [37]",
    "at::native::(anonymous namespace)::v<4, F<true>, S<char*, 1>>(int)",
]
LAMBDAS = [
    "void g<(int)8, void n::h<n::s(T &)::[lambda() (instance 2)]::operator ()() const>>(const T *)",
    "void g<8, n::h<n::s(T&)::{lambda()#2}::operator()() const> >(T const*)",
]
RETURNED = [
    "std::enable_if<!T7, void>::type i::k<int, (bool)0>(T1)",
    "std::enable_if<!(false), void>::type i::k<int, false>(int)",
]


@st.composite
def signatures(draw: st.DrawFn) -> tuple[str, str, str]:
    """Scope and function, templates, arguments."""
    scope = "".join(f"{name}::" for name in draw(st.lists(IDENTIFIERS, max_size=2)))
    templates = draw(st.lists(TYPES | st.sampled_from(["(int)4", "(bool)0"]), max_size=3))
    arguments = ", ".join(draw(st.lists(TYPES, max_size=3)))
    listed = f"<{', '.join(templates)}>" if templates else ""
    return scope + draw(IDENTIFIERS), listed, f"({arguments})"


def one_to_one(*names: tuple[str, str]) -> list[SameKernels]:
    return [SameKernels((one,), (other,)) for one, other in names]


class TestSameName:
    @given(signature=signatures())
    def test_at_each_shortening(self, signature: tuple[str, str, str]) -> None:
        function, templates, arguments = signature
        whole = f"void {function}{templates}{arguments}"
        shortenings = [
            whole,
            f"{function}{templates}{arguments}".replace(" *", "*").replace(", ", ","),
            f"{function}{templates}",
            function,
            function.rpartition("::")[2],
        ]
        for shortening in shortenings:
            assert same_kernels([whole], [shortening]) == one_to_one((whole, shortening))
            assert same_kernels([shortening], [whole]) == one_to_one((shortening, whole))

    @given(signature=signatures(), data=st.data())
    def test_where_it_is_cut_off(
        self, signature: tuple[str, str, str], data: st.DataObject
    ) -> None:
        """Wherever a table ends the name, it is that of the only kernel of the other file."""
        whole = "".join(signature)
        end = data.draw(st.integers(len(signature[0]), len(whole) - 1))
        mark = data.draw(st.sampled_from(["…", "...", "… "]))
        cut = f"void {whole[:end]}{mark}"
        assert same_kernels([whole, "another()"], [cut]) == one_to_one((whole, cut))

    @pytest.mark.parametrize("one", WRITINGS)
    @pytest.mark.parametrize("other", WRITINGS)
    def test_as_each_tool_writes_it(self, one: str, other: str) -> None:
        assert plain(one) == plain(other)
        assert same_kernels([one], [other]) == one_to_one((one, other))

    def test_with_lambdas_const_and_return_types(self) -> None:
        assert plain(LAMBDAS[0]) == plain(LAMBDAS[1])
        for one, other in (LAMBDAS, RETURNED):
            assert same_kernels([one], [other]) == one_to_one((one, other))

    def test_that_is_cut_off_in_its_arguments(self) -> None:
        cut = "void n::f<(int)3>(T1 *, …"
        names = ["void n::f<3>(float*)", "void n::f<4>(float*)", "void n::f3()"]
        assert same_kernels(names, [cut]) == one_to_one((names[0], cut))

    @given(name=st.text(max_size=40))
    def test_of_any_text_is_itself(self, name: str) -> None:
        assert same_kernels([name], [name]) == one_to_one((name, name))
        assert parts(name) == parts(name)

    def test_with_arguments_of_the_templates_types(self) -> None:
        """CUDA's demangler writes T1 where the C++ library writes the type."""
        ncu = ["void f<(int)4, A>(int, T2)", "void f<(int)4, B>(int, T2)"]
        torch = ["void f<4, B>(int, B)", "void f<4, C>(int, C)"]
        assert same_kernels(ncu, torch) == one_to_one((ncu[1], torch[0]))

    def test_finest_agreement_counts(self) -> None:
        assert same_kernels(["f<int>(int)", "g"], ["f<int>(int)", "f", "void g"]) == one_to_one(
            ("f<int>(int)", "f<int>(int)"), ("g", "void g")
        )


class TestMangledName:
    """`c++filt` writes the demangled names so, and so they are read by the C++ ABI."""

    PAIRS = (
        ("_Z1fPdS_i", "f(double*, double*, int)"),
        ("_Z10f_in_blockILi4ELb1EEvPKf.kd", "void f_in_block<4, true>(float const*)"),
        ("_ZN2at6native1gILi4EEEvT_ [3]", "void at::native::g<(int)4>(T1)"),
        ("_ZN2at12_GLOBAL__N_11hEPf", "at::(anonymous namespace)::h(float*)"),
        ("_ZL1kPf", "k(float *)"),
    )

    @pytest.mark.parametrize(("mangled", "name"), PAIRS)
    def test_is_that_of_its_function(self, mangled: str, name: str) -> None:
        assert same_kernels([name], [mangled]) == one_to_one((name, mangled))
        assert same_kernels([mangled], [name]) == one_to_one((mangled, name))

    def test_beside_others(self) -> None:
        mangled, names = zip(*self.PAIRS, strict=True)
        pairs = same_kernels(names, (*mangled[::-1], "other(int)"))
        assert {(*pair.counted, *pair.traced) for pair in pairs} == set(
            zip(names, mangled, strict=True)
        )

    @pytest.mark.parametrize(
        ("counted", "traced"),
        [
            (["f<1>(int)", "f<2>(int)"], ["_Z1fILi1EEvi"]),
            (["f<1>(int)"], ["_Z1fILi1EEvi", "_Z1fILi2EEvi"]),
            (["_Z1fILi1EEvi"], ["_Z1fILi2EEvi"]),
            (["a::f(int)"], ["_ZN1b1fEi"]),
            (["f(int)"], ["_Z1gi"]),
            (["f(int)"], ["_Z9f"]),
        ],
    )
    def test_of_several_or_others_joins_none(self, counted: list[str], traced: list[str]) -> None:
        assert same_kernels(counted, traced) == []


class TestOtherName:
    @given(signature=signatures(), types=st.lists(TYPES, min_size=2, max_size=2, unique=True))
    def test_of_other_templates_is_never_merged(
        self, signature: tuple[str, str, str], types: list[str]
    ) -> None:
        """Where both files tell the templates, a variant is of its own alone."""
        function, _, arguments = signature
        one, other = (f"void {function}<{name}>{arguments}" for name in types)
        assert same_kernels([one], [other]) == []
        assert same_kernels([one, other], [other]) == one_to_one((other, other))
        without = other.removesuffix(arguments)
        assert same_kernels([one, other], [without]) == one_to_one((other, without))

    @given(signature=signatures(), types=st.lists(TYPES, min_size=2, max_size=2, unique=True))
    def test_of_a_bare_name_is_all_its_variants(
        self, signature: tuple[str, str, str], types: list[str]
    ) -> None:
        variants = tuple(f"void {signature[0]}<{name}>{signature[2]}" for name in types)
        base = signature[0].rpartition("::")[2]
        assert same_kernels(variants, [base]) == [SameKernels(variants, (base,))]
        assert same_kernels([base], variants) == [SameKernels((base,), variants)]

    @pytest.mark.parametrize(
        ("counted", "traced"),
        [
            (["f(int)"], ["f(float)"]),
            (["a::f(int)"], ["b::f(int)"]),
            (["f<int>(T1)"], ["f<int>(int, int)"]),
            (["f<int>(int)", "f<int>(float)"], ["f<int>(T1)"]),
            (["f(int)", "g"], ["f", "g(int)"]),  # a C name of a file that tells arguments is whole
            (["f<int>", "f<float>"], ["f<…"]),
            (["f<int, int>", "f<int, float>"], ["f<int, int>", "f<int…", "f<…"]),
            (["f"], ["…"]),
        ],
    )
    def test_or_ambiguous_is_not_matched(self, counted: list[str], traced: list[str]) -> None:
        exact = [name for name in counted if name in traced]
        assert same_kernels(counted, traced) == one_to_one(*((name, name) for name in exact))
