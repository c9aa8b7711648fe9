"""Refusals on a page name the fields of a form, which has no options."""

import pytest

from veilog._language import languages, spoken
from veilog.errors import ParameterError
from veilog.messages import for_surface
from veilog.web.work.request import requested_options


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"method": "travas", "epsilon": "1"}, "“Small chance δ”: 1e-6"),
        ({"method": "evolve", "epsilon": "1", "unit": "Patient"}, "(“The guarantee protects”)"),
    ],
)
def test_what_a_form_is_refused_for_names_its_fields(form: dict[str, str], field: str) -> None:
    with pytest.raises(ParameterError) as refused:
        requested_options(form)
    with for_surface("pages"):
        assert field in str(refused.value)
        for language in languages():
            with spoken(language):
                assert "--" not in str(refused.value)
