"""Schemas of Arrow: one that holds what several files hold."""

from __future__ import annotations

from typing import Any


def common_schema(schemas: list[Any]) -> Any:
    """Return a schema that holds the entries of all files: by itself pyarrow takes the types of the
    first one, and numbers with a point do not fit into its integers, counts not into its yes and
    no, and nothing into a column without a type, as empty ones are written."""
    import pyarrow as pa

    schema = schemas[0]
    for other in schemas[1:]:
        for field in other:
            place = schema.get_field_index(field.name)
            if place < 0:
                schema = schema.append(field)
            elif not field.type.equals(schema.field(place).type):
                kind = _wider(schema.field(place).type, field.type)
                schema = schema.set(place, pa.field(field.name, kind))
    return schema


def _wider(one: Any, other: Any) -> Any:
    """Return the type of Arrow that holds the entries of two; text where no other does."""
    import pyarrow as pa

    numbers = [kind for kind in (one, other) if not pa.types.is_boolean(kind)]
    if len(numbers) == 1 and (pa.types.is_integer(numbers[0]) or pa.types.is_floating(numbers[0])):
        return numbers[0]
    kinds = [pa.schema([("", kind)]) for kind in (one, other)]
    try:
        return pa.unify_schemas(kinds, promote_options="permissive").field(0).type
    except pa.ArrowTypeError:
        return pa.string()


def with_types(data: Any) -> Any:
    """Return a dataset of pyarrow whose columns have types: those of later files where the first
    file, whose types pyarrow takes for all, has columns without an entry."""
    import pyarrow as pa

    empty = {field.name for field in data.schema if pa.types.is_null(field.type)}
    if not empty:
        return data
    try:
        parts = list(data.get_fragments())
    except ValueError:  # rows or columns of it were chosen
        return data
    seen = [pa.schema([f for f in part.physical_schema if f.name in empty]) for part in parts]
    types = common_schema([pa.schema([]), *seen])
    fields = [types.field(f.name) if f.name in types.names else f for f in data.schema]
    schema = pa.schema(fields, metadata=data.schema.metadata)
    return data if schema.equals(data.schema) else data.replace_schema(schema)
