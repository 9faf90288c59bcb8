"""What an update has changed, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import words

if TYPE_CHECKING:
    from ..questions.growth import Change, Update


def update_text(found: Update) -> str:
    """Tell the rows that came and went, what components gained and lost, and what is proved."""
    rows = [f"{found.added} rows more" if found.added else ""]
    rows += [f"{found.removed} rows less" if found.removed else ""]
    lines = [f"{', '.join(filter(None, rows))}: {found.result.n_samples} rows now"]
    if found.same:
        lines.append("every component uses the features that it used before")
    lines += [line for change in found.changes for line in _of(change, found)]
    for i in found.faded:
        gone = ", ".join(map(words.plain, found.before.names(i)))
        lines.append(f"  component {i + 1} of before does not go on: {gone}")
    old, new = found.before.certificate, found.result.certificate
    lines.append(
        f"value {words.at_least(new.value)} ({words.at_least(old.value)} before), gap "
        f"{words.gap_percent(new.gap)} ({words.gap_percent(old.gap)} before)"
    )
    lines.append(words.verdict(new).headline)
    return "\n".join(lines)


def _of(change: Change, found: Update) -> list[str]:
    head = f"  component {change.component + 1}"
    if change.before is None:
        names = ", ".join(map(words.plain, found.result.names(change.component)))
        return [f"{head} is new, variance {words.variance(change.variance)}: {names}"]
    if not change.came and not change.went:
        return []
    old = "" if change.before == change.component else f" (component {change.before + 1} before)"
    parts = [f"+{words.plain(name)}" for name in change.came]
    parts += [f"-{words.plain(name)}" for name in change.went]
    return [
        f"{head}{old}: {', '.join(parts)}; variance {words.variance(change.variance)} instead of "
        f"{words.variance(change.variance_before)}"
    ]
