"""What a process model that is discovered from a release is worth on the original."""

from veilog.measures.process_model.measure import MEASURES, ModelQuality, model_quality

__all__ = ["MEASURES", "ModelQuality", "model_quality"]
