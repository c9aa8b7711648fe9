"""Released persons: which released cases are those of one made-up person, and what stays the same in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa

from veilog._typing import IntArray
from veilog.logs.eventlog import as_dictionary
from veilog.logs.variants import Repeated
from veilog.messages import Message
from veilog.methods._events.assemble import Wanted
from veilog.methods._events.attributes.synthesis import ReleasedColumns
from veilog.methods._events.links import first_of, kept_links, linked
from veilog.methods._events.returns import asked_returns
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms.noise import generator
from veilog.rules.attributes import AttributeTable
from veilog.rules.rules import ReleaseRules


def with_persons(
    curator: Curator,
    epsilon: Fraction,
    wanted: Wanted,
    cases: Repeated,
    times: IntArray | None,
    columns: ReleasedColumns,
    remark: Callable[[Message], None],
    rules: ReleaseRules | None,
) -> ReleasedColumns:
    """Return the columns with one that names a made-up person for each case, called as that of the persons of the log.

    Attributes of persons are those of the first case of a person in all its cases. A link goes where a case would break
    a rule by them; so no case breaks one that it did not break before. Cases without events are of a person without
    others.
    """
    if not len(cases):
        return columns
    rng = generator(curator.randomness)
    found = asked_returns(curator, epsilon, cases, rng, remark, timed=times is not None)
    if found is None:
        return columns
    bare = [name.removeprefix("case:") for name in wanted.person_attributes]
    constant = [name for name in columns.cases if name.removeprefix("case:") in bare]
    values = np.zeros(len(cases), dtype=np.int64)
    for name in constant:
        codes = as_dictionary(pa.chunked_array([columns.cases[name]])).indices.fill_null(-1).to_numpy()
        values = np.unique(np.stack([values, codes]), axis=1, return_inverse=True)[1].reshape(-1)
    going = np.flatnonzero(cases.lengths)
    starts = ends = going
    if times is not None:
        starts, ends = times[cases.offsets[going]], times[cases.offsets[going + 1] - 1]
    following = np.full(len(cases), -1, dtype=np.int64)
    links = linked(found.of(going), starts, ends, values[going], rng)
    following[going] = np.where(links >= 0, going[links], -1)

    def exchanged(first: IntArray) -> ReleasedColumns:
        taken = {name: columns.cases[name].take(pa.array(first)) for name in constant}
        return replace(columns, cases={**columns.cases, **taken})

    def breaking(first: IntArray) -> IntArray:
        if rules is None or not constant:
            return first[:0]
        table = table_of(exchanged(first), cases, times)
        ours = [table.cases_breaking(rule) for rule in rules.attributes if table.has(rule)]
        return np.unique(np.concatenate([first[:0], *ours]))

    kept = kept_links(following, breaking)
    first = first_of(kept)
    column = (curator.unit.column or "").removeprefix("case:")
    remark(Message("persons-made-up", name=column))
    numbers = np.unique(first, return_inverse=True)[1]
    names = pa.DictionaryArray.from_arrays(
        pa.array(numbers, pa.int32()), pa.array([f"person {number + 1}" for number in range(int(numbers.max()) + 1)])
    )
    made = exchanged(first)
    return replace(made, cases={column: names, **made.cases})


def table_of(columns: ReleasedColumns, cases: Repeated, times: IntArray | None) -> AttributeTable:
    """Return the released cases as rules about attributes see them."""
    owners = np.repeat(np.arange(len(cases)), cases.lengths)
    going, starts = np.flatnonzero(cases.lengths), np.zeros(len(cases), dtype=np.int64)
    if times is not None:
        starts[going] = times[cases.offsets[going]]
    codes = cases.rows(0, len(cases)).codes.astype(np.int64)
    return AttributeTable(owners, cases.labels, codes, starts, columns.cases, columns.events)
