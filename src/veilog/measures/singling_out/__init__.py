"""Risk before and after: what somebody who knows a few events of a person finds out from a release."""

from veilog.measures.singling_out.measure import Knowledge, Rate, SinglingOut, in_words, singling_out

__all__ = ["Knowledge", "Rate", "SinglingOut", "in_words", "singling_out"]
