"""Elements of pictures are well-formed, with SVG's attributes and numbers."""

import xml.etree.ElementTree as ET

import pytest

from veilog._notebook import element, escape, picture, points_of

NASTY = """<&>"' ]]> &amp; </text>"""


@pytest.mark.parametrize("text", [NASTY, "plain", "é€"])
def test_texts_and_values_come_back_as_they_went_in(text: str) -> None:
    read = ET.fromstring(element("text", text, aria_label=text))
    assert read.text == text
    assert read.attrib == {"aria-label": text}
    assert ET.fromstring(f"<li>{escape(text)}</li>").text == text


def test_attributes_have_their_names_and_numbers_one_place() -> None:
    said = element("line", class_="g", x1=1, y1=2.06, stroke_width=-0.5, viewBox="0 0 1 1")
    assert said == '<line class="g" x1="1" y1="2.1" stroke-width="-0.5" viewBox="0 0 1 1"/>'
    assert points_of([(0, 1.25), (2.0, -3)]) == "0.0,1.2 2.0,-3.0"


def test_a_picture_stands_for_itself_and_holds_its_parts_as_they_are() -> None:
    read = ET.fromstring(picture([element("g", parts=[element("text", NASTY)])], 30, 20, role="img"))
    assert read.tag == "{http://www.w3.org/2000/svg}svg"
    assert {key: read.get(key) for key in ("viewBox", "width", "height", "role")} == {
        "viewBox": "0 0 30 20",
        "width": "30",
        "height": "20",
        "role": "img",
    }
    assert [part.text for part in read.iter("{http://www.w3.org/2000/svg}text")] == [NASTY]
