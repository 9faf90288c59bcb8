"""The topics that Asteris et al. 2015 print in table 4, words of larger weight first."""

from __future__ import annotations

_ROWS = {
    "tpower": """
network algorithm neuron parameter object classifier word noise
model data cell point image net speech control
learning system pattern distribution recognition classification level dynamic
input error layer hidden images class context step
function weight information space task test hmm term
neural problem signal gaussian features order character optimal
unit result visual linear feature examples processing component
set number field probability representation rate non equation
training method synaptic mean performance values approach single
output vector firing case view experiment trained analysis""",
    "spannogram": """
network algorithm neuron parameter recognition control classifier noise
model data cell distribution object action classification order
input weight pattern point image dynamic class term
learning error layer linear word step net component
neural problem signal probability performance optimal test rate
function output information space task policy speech equation
unit result visual gaussian features states examples single
set number synaptic hidden representation reinforcement approach analysis
system method field case feature values experiment large
training vector response mean images controller trained form""",
    "bipartite": """
data function neuron unit learning network model training
distribution algorithm cell weight space input parameter hidden
gaussian set visual layer action neural information performance
probability error direction net order system control recognition
component problem firing task step output dynamic classifier
approach result synaptic connection linear pattern mean test
analysis number response activation case signal noise word
mixture method spike architecture values processing field speech
likelihood vector activity generalization term image local classification
experiment point motion threshold optimal object equation trained""",
}
# Method -> eight topics of ten words.
TOPICS: dict[str, list[list[str]]] = {
    method: [list(topic) for topic in zip(*(line.split() for line in rows.split("\n")[1:]))]
    for method, rows in _ROWS.items()
}
