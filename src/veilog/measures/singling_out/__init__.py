"""Risk before and after: what somebody who knows something of a person finds out from a release.

Singling out, linking and inferring are the three risks by which anonymisation is judged (Article 29 Working Party,
opinion 05/2014); each is attacked here, with a control that shows what anybody could guess anyway.
"""

from veilog.measures.singling_out.finding import Example, Exposed, Exposure, exposure
from veilog.measures.singling_out.inferring import Inference, Inferred, inference
from veilog.measures.singling_out.linking import Linkability, Linked, linkability
from veilog.measures.singling_out.measure import Knowledge, SinglingOut, singling_out
from veilog.measures.singling_out.people import halves
from veilog.measures.singling_out.rates import Control, Rate, Success
from veilog.measures.singling_out.words import (
    begun,
    briefly_in_words,
    found_in_words,
    in_words,
    inferred_in_words,
    known_of,
    like_who,
    linked_in_words,
    own_path_in_words,
    said_once,
)

__all__ = [
    "Control",
    "Example",
    "Exposed",
    "Exposure",
    "Inference",
    "Inferred",
    "Knowledge",
    "Linkability",
    "Linked",
    "Rate",
    "SinglingOut",
    "Success",
    "begun",
    "briefly_in_words",
    "exposure",
    "found_in_words",
    "halves",
    "in_words",
    "inference",
    "inferred_in_words",
    "known_of",
    "like_who",
    "linkability",
    "linked_in_words",
    "own_path_in_words",
    "said_once",
    "singling_out",
]
