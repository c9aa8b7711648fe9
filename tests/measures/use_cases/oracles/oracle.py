"""Results of other packages on two logs: oracle.py distances|attributes FILE.npz.

The answers are JSON. Run it in the environment of requirements.txt, which has no veilog. Categories are integers with
-1 for unknown, numbers have NaN. Names of arrays are LOG/TABLE/COLUMN, with original or released, and cases or events.
"""

import datetime
import itertools
import json
import sys
import warnings

import numpy as np
import pandas as pd

warnings.simplefilter("ignore")


def distances(tables):
    from log_distance_measures.absolute_event_distribution import absolute_event_distribution_distance
    from log_distance_measures.case_arrival_distribution import case_arrival_distribution_distance
    from log_distance_measures.circadian_event_distribution import circadian_event_distribution_distance
    from log_distance_measures.config import EventLogIDs
    from log_distance_measures.cycle_time_distribution import cycle_time_distribution_distance
    from log_distance_measures.n_gram_distribution import n_gram_distribution_distance
    from log_distance_measures.relative_event_distribution import relative_event_distribution_distance

    logs = [tables[name, "events"] for name in ("released", "original")]
    for log in logs:
        log["time"] = pd.to_datetime(log["time"], unit="us", utc=True)
    ids = EventLogIDs("case", "activity", "time", "time")
    by_place = EventLogIDs("case", "activity", "place", "place")
    both = (logs[0], ids, logs[1], ids)
    return {
        "ngram_2": n_gram_distribution_distance(logs[0], by_place, logs[1], by_place, 2),
        "ngram_3": n_gram_distribution_distance(logs[0], by_place, logs[1], by_place, 3),
        "absolute": absolute_event_distribution_distance(*both),
        "circadian": circadian_event_distribution_distance(*both),
        "relative": relative_event_distribution_distance(*both),
        "cycle_time": cycle_time_distribution_distance(*both, bin_size=datetime.timedelta(hours=1)),
        "arrival": case_arrival_distribution_distance(*both),
    }


def attributes(tables):
    """Similarities by table, and by name of attribute or pair of names.

    Columns with a sign before their name (# the path of the case, ~ attributes of cases at each event) are there for
    pairs with the others; # is the activity of an event. Tables "... cut" have their numbers as categories.
    """
    found = {}
    for table in ("cases", "events"):
        real, synthetic = (_readable(tables.get((log, table), pd.DataFrame())) for log in ("original", "released"))
        cut = [_readable(tables.get((log, f"{table} cut"), pd.DataFrame())) for log in ("original", "released")]
        names = [name for name in real.columns if name[0] not in "#~"]
        complete = [name for name in names if not (real[name].isna().any() or synthetic[name].isna().any())]
        found[table] = {
            "shapes": {name: _shape(real[name], synthetic[name]) for name in names},
            "pairs": [
                [first, second, _pair((real, synthetic), cut, [first, second])]
                for first, second in itertools.combinations(real.columns, 2)
                if (first in names or second in names) and "#" not in (first, second)
            ],
            "report": _report(real[complete], synthetic[complete]) if len(complete) > 1 else None,
            "by_activity": {name: _by_activity(real, synthetic, name) for name in names} if table == "events" else {},
        }
    return found


def _readable(table):
    """Categories as text, unknown ones as None."""
    return pd.DataFrame(
        {
            name: column if column.dtype == float else column.map(lambda code: None if code < 0 else f"v{code}")
            for name, column in table.items()
        }
    )


def _is_number(column):
    return column.dtype == float


def _shape(real, synthetic):
    from sdmetrics.single_column import KSComplement, MissingValueSimilarity, TVComplement

    metric = KSComplement if _is_number(real) else TVComplement
    return MissingValueSimilarity.compute(real, synthetic) * metric.compute(real, synthetic)


def _pair(tables, cut, names):
    """Numbers beside a category as the categories that they were cut into."""
    from sdmetrics.column_pairs import ContingencySimilarity, CorrelationSimilarity
    from sdmetrics.errors import ConstantInputError

    numbers = [name for name in names if _is_number(tables[0][name])]
    try:
        if len(numbers) == 2:
            found = CorrelationSimilarity.compute(*(table[names] for table in tables))
        else:
            parts = [table[names].assign(**own[numbers]) for table, own in zip(tables, cut, strict=True)]
            known = [table[table.notna().any(axis=1)].fillna("unknown") for table in parts]
            found = ContingencySimilarity.compute(*known)
    except (ConstantInputError, ValueError):  # a constant, or no two rows that know both
        return None
    return None if np.isnan(found) else found


def _by_activity(real, synthetic, name):
    """Return the mean over activities, weighted by known values; a lost one has 0."""
    groups = dict(list(synthetic.groupby("#")))
    found = []
    for activity, rows in real.groupby("#"):
        weight = rows[name].notna().sum()
        there = weight and activity in groups and groups[activity][name].notna().any()
        found.append((_shape(rows[name], groups[activity][name]) if there else 0.0, weight))
    return float(np.average([value for value, _ in found], weights=[weight for _, weight in found]))


def _report(real, synthetic):
    from sdmetrics.reports.single_table import QualityReport

    columns = {name: {"sdtype": "numerical" if _is_number(real[name]) else "categorical"} for name in real.columns}
    report = QualityReport()
    report.num_rows_subsample = None
    report.real_correlation_threshold = report.real_association_threshold = 0
    report.generate(real, synthetic, {"columns": columns}, verbose=False)
    shapes = report.get_details("Column Shapes")
    pairs = report.get_details("Column Pair Trends")
    mixed = {name: _is_number(real[name]) for name in real.columns}
    return {
        "shapes": dict(zip(shapes["Column"], shapes["Score"], strict=True)),
        "pairs": [
            [first, second, None if np.isnan(score) else score]
            for first, second, score in zip(pairs["Column 1"], pairs["Column 2"], pairs["Score"], strict=True)
            if mixed[first] == mixed[second]
        ],
    }


def main():
    tables = {}
    with np.load(sys.argv[2]) as arrays:
        for place in arrays.files:
            log, table, column = place.split("/", 2)
            tables.setdefault((log, table), {})[column] = arrays[place]
    frames = {place: pd.DataFrame(columns) for place, columns in tables.items()}
    print(json.dumps({"distances": distances, "attributes": attributes}[sys.argv[1]](frames)))


if __name__ == "__main__":
    main()
