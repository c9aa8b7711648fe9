"""Risk before and after: what somebody who knows something of a person finds out from a release.

Singling out, linking and inferring are the three risks by which anonymisation is judged (Article 29 Working Party,
opinion 05/2014); each is attacked here, with a control that shows what anybody could guess anyway.
"""

from veilog.measures.singling_out.identification import exposure
from veilog.measures.singling_out.inference import inference
from veilog.measures.singling_out.linkage import linkability
from veilog.measures.singling_out.measure import singling_out
from veilog.measures.singling_out.targets import halves

__all__ = ["exposure", "halves", "inference", "linkability", "singling_out"]
