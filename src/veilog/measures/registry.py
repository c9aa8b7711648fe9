"""Every measure by its name: our own, each imported when it is asked for, and those that other packages add."""

from __future__ import annotations

from veilog._plugins import Registry
from veilog.measures.measure import Measure

MEASURES = Registry(
    Measure,
    "veilog.measures",
    {
        "relative_log_similarity": "veilog.measures.similarity.measure:DIRECT",
        "relative_log_similarity_exact": "veilog.measures.similarity.measure:EXACT",
        "absolute_log_difference": "veilog.measures.similarity.difference:BY_LENGTH",
        "absolute_log_difference_maximum": "veilog.measures.similarity.difference:BY_MAXIMUM",
        "dfg_moved": "veilog.measures.directly_follows:MOVED",
        "dfg_largest_changes": "veilog.measures.directly_follows:LARGEST_CHANGES",
        "coverage": "veilog.measures.directly_follows:COVERAGE",
        "singling_out": "veilog.measures.singling_out.measure:SINGLING_OUT",
        "linkability": "veilog.measures.singling_out.linking:LINKABILITY",
        "inference": "veilog.measures.singling_out.inferring:INFERENCE",
        "case_durations": "veilog.measures.durations:CASE_DURATIONS",
        "active_cases": "veilog.measures.durations:ACTIVE_CASES",
        "dfg_frequency_emd": "veilog.measures.directly_follows:FREQUENCY_EMD",
        "dfg_time_emd": "veilog.measures.directly_follows:TIME_EMD",
        "size_ratio": "veilog.measures.complexity:SIZE_RATIO",
        "length_error": "veilog.measures.complexity:LENGTH_ERROR",
        "sequence_entropy": "veilog.measures.complexity:ENTROPY",
        "sequence_entropy_original": "veilog.measures.complexity:ENTROPY_ORIGINAL",
        "rework": "veilog.measures.rework:REWORK",
        "variants": "veilog.measures.overlap:VARIANTS",
        "keep_real": "veilog.measures.overlap:REAL_CASES",
        "normal_share": "veilog.measures.anomalies:NORMAL_SHARE",
        "fitness": "veilog.measures.process_model.measure:FITNESS",
        "precision": "veilog.measures.process_model.measure:PRECISION",
        "f_score": "veilog.measures.process_model.measure:F_SCORE",
        "generalization": "veilog.measures.process_model.measure:GENERALIZATION",
    },
)
"""In the order in which they are taken, and in which the reasons of those without a value stand."""
