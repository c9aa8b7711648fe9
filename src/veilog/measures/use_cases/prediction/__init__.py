"""Prediction: what is learnt from the log that is used, judged on cases of the original that it never saw."""

from veilog.measures.use_cases.prediction.use_case import PREDICTION, next_activity, predicted

__all__ = ["PREDICTION", "next_activity", "predicted"]
