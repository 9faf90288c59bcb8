"""Questions that follow an answer: how many, what else, how stable, what changed, and why."""
