"""Released persons: which released cases are those of one made-up person, and what stays the same in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
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
from veilog.methods._events.returns import Returns, asked_returns
from veilog.privacy.curator import Curator
from veilog.rules.attributes import AttributeTable
from veilog.rules.rules import ReleaseRules


@dataclass(frozen=True, eq=False)
class PersonsModel:
    """What made-up persons are drawn from: noisy answers and public facts."""

    returns: Returns
    column: str
    """It names the persons, as that of the log does."""
    attributes: tuple[str, ...]
    """Those of persons."""
    rules: ReleaseRules | None

    def named(
        self, cases: Repeated, times: IntArray | None, columns: ReleasedColumns, rng: np.random.Generator
    ) -> ReleasedColumns:
        """Return the columns with one that names a made-up person for each case.

        Attributes of persons are those of the first case of a person in all its cases. A link goes where a case would
        break a rule by them; so no case breaks one that it did not break before. Cases without events are of a person
        without others.
        """
        constant = [name for name in columns.cases if name.removeprefix("case:") in self.attributes]
        values = np.zeros(len(cases), dtype=np.int64)
        for name in constant:
            codes = as_dictionary(pa.chunked_array([columns.cases[name]])).indices.fill_null(-1).to_numpy()
            values = np.unique(np.stack([values, codes]), axis=1, return_inverse=True)[1].reshape(-1)
        going = np.flatnonzero(cases.lengths)
        starts = ends = going
        if times is not None:
            starts, ends = times[cases.offsets[going]], times[cases.offsets[going + 1] - 1]
        following = np.full(len(cases), -1, dtype=np.int64)
        links = linked(self.returns.of_cases(cases).of(going), starts, ends, values[going], rng)
        following[going] = np.where(links >= 0, going[links], -1)

        def exchanged(first: IntArray) -> ReleasedColumns:
            taken = {name: columns.cases[name].take(pa.array(first)) for name in constant}
            return replace(columns, cases={**columns.cases, **taken})

        def breaking(first: IntArray) -> IntArray:
            if self.rules is None or not constant:
                return first[:0]
            table = table_of(exchanged(first), cases, times)
            ours = [table.cases_breaking(rule) for rule in self.rules.attributes if table.has(rule)]
            return np.unique(np.concatenate([first[:0], *ours]))

        first = first_of(kept_links(following, breaking))
        numbers = np.unique(first, return_inverse=True)[1]
        people = [f"person {number + 1}" for number in range(int(numbers.max(initial=-1)) + 1)]
        names = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array(people, pa.string()))
        return replace(columns, cases={self.column: names, **exchanged(first).cases})


def asked_persons(
    curator: Curator,
    epsilon: Fraction,
    wanted: Wanted,
    cases: Repeated,
    rng: np.random.Generator,
    remark: Callable[[Message], None],
    rules: ReleaseRules | None,
    *,
    timed: bool,
) -> PersonsModel | None:
    """Return what persons are drawn from; None, and nothing is asked, where noise would leave nothing of them."""
    found = asked_returns(curator, epsilon, cases, rng, remark, timed=timed)
    if found is None:
        return None
    column = (curator.unit.column or "").removeprefix("case:")
    remark(Message("persons-made-up", name=column))
    return PersonsModel(found, column, tuple(name.removeprefix("case:") for name in wanted.person_attributes), rules)


def table_of(columns: ReleasedColumns, cases: Repeated, times: IntArray | None) -> AttributeTable:
    """Return the released cases as rules about attributes see them."""
    owners = np.repeat(np.arange(len(cases)), cases.lengths)
    going, starts = np.flatnonzero(cases.lengths), np.zeros(len(cases), dtype=np.int64)
    if times is not None:
        starts[going] = times[cases.offsets[going]]
    codes = cases.rows(0, len(cases)).codes.astype(np.int64)
    return AttributeTable(owners, cases.labels, codes, starts, columns.cases, columns.events)
