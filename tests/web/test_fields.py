"""Refusals of the library on a page: they speak of the fields of a form, which has no options."""

import pytest

from veilog._language import languages, spoken
from veilog.errors import ParameterError
from veilog.web.pages.words import FILTERS
from veilog.web.work.request import asked_for

told = FILTERS["told"]


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"method": "travas", "epsilon": "1"}, "number of cases, e.g. “Small chance δ”: 1e-6."),
        ({"method": "evolve", "epsilon": "1", "unit": "Patient"}, "The unit 'Patient' (“The promise is for”) protects"),
        (
            {"method": "laplace", "epsilon": "1", "times": "0.3", "as_published": "on"},
            "Times and attributes come with certified releases only. Leave out “As published”.",
        ),
    ],
)
def test_what_a_form_is_refused_for_names_its_fields(form: dict[str, str], said: str) -> None:
    with pytest.raises(ParameterError) as refused:
        asked_for(form)
    assert said in told(refused.value.in_command())
    for language in languages():
        with spoken(language):
            assert "--" not in told(refused.value.in_command())


def test_an_option_without_a_field_is_not_advised() -> None:
    said = (
        "Some events have no time. Leave them out when reading (--on missing-timestamp=drop). Or take another method."
    )
    assert told(said) == "Some events have no time. Or take another method."
    assert told("Declare them (--domain NAME=a|b|c, or NAME=LOW..HIGH for numbers).") == (
        "Declare them (“Values that it may have, one on each line, or a range as 0..100”)."
    )
