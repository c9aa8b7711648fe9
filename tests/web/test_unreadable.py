"""Why a file cannot be read, in the language of the page."""

import gzip
import io
import zipfile
from importlib import resources
from pathlib import Path

import pytest
from web_logs import read
from web_serving import SMALL

from veilog import _language as language_of_pages
from veilog._language import languages, spoken
from veilog._language.catalogue import entries
from veilog.errors import VeilogError
from veilog.messages import for_surface

OTHERS = languages()[1:]


def translated(language: str) -> set[str]:
    text = (resources.files(language_of_pages) / f"{language}.po").read_text(encoding="utf-8")
    return {said for entry in entries(text) for said in entry.said}


def zipped(*names: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name in names:
            file.writestr(name, SMALL)
    return content.getvalue()


UNREAD = {
    "empty.csv": b"",
    "columns.csv": b"foo;bar;baz\n1;a;2024-01-01\n",
    "several.csv": b"case id,case_id,activity,time\n1,1,a,2024-01-01\n",
    "twice.csv": b"case,activity,time,x,x\n1,a,2024-01-01,1,2\n",
    "days.csv": b"case,activity,time\n1,a,01/02/2024\n2,a,01/03/2024\n",
    "changing.csv": b"case,activity,time\n1,a,13/02/2024\n2,a,01/14/2024\n",
    "time.csv": b"case,activity,time\n1,a,never\n",
    "quote.csv": b'case,activity,time\n1,"a,2024-01-01\n',
    "inside.csv": b'case,activity,time\n1,a"b"c,2024-01-01\n1,"b"c,2024-01-01\n',
    "fields.csv": b"case,activity,time\n1,a,b,2024-01-01\n",
    "binary.csv": bytes(range(256)) * 9,
    "plain.csv.gz": SMALL,
    "cut.csv.gz": gzip.compress(SMALL * 99)[:-9],
    "two.zip": zipped("a.csv", "b.csv"),
    "none.zip": zipped(),
    "other.zip": zipped("a.doc"),
    "no.zip": SMALL,
    "no.xlsx": SMALL,
    "no.parquet": b"case",
    "page.xes": b"<html></html>",
    "cut.xes": b"<log><trace>",
    "wrong.xes": b"<log><trace></log>",
    "other.json": b"{}",
    "no.json": b"case",
    "old.jsonocel": b'{"ocel:events": {}}',
}
"""Files that cannot be read as they are."""


@pytest.mark.slow
@pytest.mark.parametrize("name", UNREAD)
def test_why_a_file_cannot_be_read_is_said_in_the_language(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(UNREAD[name])

    def said(language: str) -> str:
        with for_surface("pages"), spoken(language):
            try:
                found = read(path)
            except VeilogError as error:
                return str(error)
            return f"{found.problem} {found.advice}"

    english = said("en")
    assert english and all(said(language) != english for language in OTHERS)
