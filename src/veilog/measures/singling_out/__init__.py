"""Risks of a release: what an attacker with some knowledge of a person finds out.

Anonymisation is judged by three risks: singling out, linking and inferring (Article 29 Working Party, opinion 05/2014).
An attack tries each of them here. A control shows what anyone could guess anyway.
"""

from veilog.measures.singling_out.identification import exposure
from veilog.measures.singling_out.inference import inference
from veilog.measures.singling_out.linkage import linkability
from veilog.measures.singling_out.measure import singling_out
from veilog.measures.singling_out.targets import halves

__all__ = ["exposure", "halves", "inference", "linkability", "singling_out"]
