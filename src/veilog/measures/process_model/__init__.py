"""What a process model that is discovered from a release is worth on the original."""

from veilog.measures.process_model.measure import model_quality
from veilog.measures.process_model.quality import MEASURES, ModelQuality

__all__ = ["MEASURES", "ModelQuality", "model_quality"]
