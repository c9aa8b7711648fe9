"""What a process model discovered from the release is worth on the original log.

The model: inductive miner infrequent (noise threshold 0.2) on the released variants, as a Petri net. Against the
original log L:

- fitness: token-based replay (Berti, van der Aalst 2019), 1/2 (1 - missing / consumed) + 1/2 (1 - remaining /
  produced), tokens summed over all cases;
- precision: escaping edges (Munoz-Gama, Carmona 2010), 1 - escaping / enabled, summed over the prefixes of all cases
  that the model can replay: an enabled activity escapes when L never continues the prefix with it;
- F-score: their harmonic mean;
- generalization (Buijs et al. 2014): 1 - mean over the net's transitions of 1 / sqrt(how often replay fired it), a
  transition that never fired counting 1.

All are computed on variants with multiplicities, which changes nothing: replay is the same for equal traces.
High fitness alone is worth little, because a model of one frequent variant or of anything at all can have it: see the
coverage beside it in :mod:`veilog.measures.comparison`.

Our own miner and replay (:mod:`veilog.mining`) find them in this process; where it is asked for, pm4py (extra
``models``) does in a process of its own, and finds the same. Time is limited: what was not reached has its reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.measures.measure import Found, Measure, Miner, Pair, Quantity
from veilog.measures.process_model import own
from veilog.measures.process_model.by_pm4py import Running, running
from veilog.measures.process_model.quality import ModelQuality

if TYPE_CHECKING:
    from veilog.logs.eventlog import EventLog


def model_quality(
    original: EventLog | Variants,
    released: EventLog | Variants,
    *,
    noise: float = 0.2,
    seconds: float = 300.0,
    memory: int = 4 << 30,
    prefixes: int | None = None,
    by: Miner = "veilog",
) -> ModelQuality:
    """Discover a model from the release and measure it on the original, within ``seconds``.

    With ``prefixes`` the precision is an estimate: over so many prefixes, drawn in proportion to the cases that have
    them and always the same ones, instead of all. For models of much noise, on which every prefix takes long.
    ``by`` says whose miner and replay; pm4py's process has ``memory`` bytes.
    """
    first, second = (log if isinstance(log, Variants) else log.variants for log in (original, released))
    _check(first, second, noise, seconds, memory, prefixes)
    if by == "pm4py":
        with running(first, second, noise=noise, seconds=seconds, memory=memory, prefixes=prefixes) as process:
            return process.result()
    return own.measured(first, second, noise=noise, seconds=seconds, prefixes=prefixes)


def _check(
    original: Variants, released: Variants, noise: float, seconds: float, memory: int, prefixes: int | None
) -> None:
    if not 0.0 <= noise <= 1.0:
        raise ParameterError(f"A noise threshold of {noise} is outside 0 to 1.", parameter="noise")
    if not seconds > 0 or not memory > 0:
        raise ParameterError("Time and memory for models must be positive.", parameter="seconds")
    if prefixes is not None and prefixes < 1:
        raise ParameterError("Precision needs at least one prefix.", parameter="prefixes")
    for variants, name in ((original, "original"), (released, "released")):
        if variants.events == 0:
            raise ParameterError(f"The {name} log has no events, so there is no model to speak of.", parameter=name)


def _running(pair: Pair) -> Running:
    """Return pm4py's measurement under way; it goes on beside the other measures."""
    first, second = pair.variants
    _check(first, second, 0.2, pair.seconds, pair.memory, None)
    process = running(first, second, noise=0.2, seconds=pair.seconds, memory=pair.memory, prefixes=None)
    return pair.enter(process)


def _begin(pair: Pair) -> None:
    if pair.miner == "pm4py":
        pair.once(_running)


def _quality(pair: Pair) -> ModelQuality:
    if pair.miner == "pm4py":
        return pair.once(_running).result()
    return model_quality(*pair.variants, seconds=pair.seconds)


def _measure(name: str, paper: str = "", doing: str = "") -> Measure:
    """Return the measure of one of the ``MEASURES``."""

    def find(pair: Pair) -> Found:
        quality = pair.once(_quality)
        return Found(getattr(quality, name), reason=quality.not_computed.get(name, ""))

    meaning = "of the model discovered from the release, against the original"
    return Measure(
        name,
        find,
        (Quantity(name.replace("_", "-"), meaning, "higher", high=1.0),),
        paper=paper,
        doing=doing,
        begin=_begin,
    )


FITNESS = _measure("fitness", "Berti, van der Aalst: Reviving token-based replay, 2019", "Model of the release")
PRECISION = _measure("precision", "Muñoz-Gama, Carmona: A fresh look at precision in process conformance, 2010")
F_SCORE = _measure("f_score")
GENERALIZATION = _measure(
    "generalization", "Buijs, van Dongen, van der Aalst: Quality dimensions in process discovery, 2014"
)
