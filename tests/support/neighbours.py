"""A bound for fewer nonzeros among those of a result, as a path puts it there."""

from __future__ import annotations

from dataclasses import replace

from sparcipal import Result


def with_neighbour(result: Result, smaller: Result) -> Result:
    """The result for s nonzeros with the best bound of one for fewer, scaled."""
    unit, known = smaller.certificate.unit, smaller.certificate.bounds[0]
    assert unit == result.certificate.unit
    s, r = (one.settings["n_nonzero_coefs"][0] for one in (result, smaller))
    data = {key: entry for key, entry in known.data.items() if key != "kept"}
    part = {"name": known.name, "value": known.value / unit, "s": r, "data": data}
    own = {"part": part} | ({"kept": known.data["kept"]} if "kept" in known.data else {})
    value, margin = (1 + 1e-12) * known.value * s / r, known.margin * s / r
    bound = replace(known, name="neighbour", value=value, data=own, margin=margin)
    bounds = sorted((*result.certificate.bounds, bound), key=lambda one: one.value)
    best = min(result.bound, bound.value)
    certificate = replace(result.certificate, bounds=tuple(bounds), bound=best)
    return replace(result, certificate=certificate)
