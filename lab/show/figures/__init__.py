"""Every figure of the lab, by the question it answers.

A figure is a function from tidy frames, whose intervals are already computed, to a
Matplotlib figure; it computes nothing, has a keyword ``theme`` and a keyword
``question`` (its title), and draws "no data: reason" where there is nothing to show.

============================  ========  ====================================================
figure                        notebook  question
============================  ========  ====================================================
``climb``                     01        what does repeating a prompt do?
``speedup_by_state``          01        what had the drafter seen before?
``pool_vs_cache``             01        is it the n-gram pool or the prompt cache?
``forgetting``                01        how long does the memory last?
``speedup_by_arm``            02        does drafting make it faster?
``speedup_by_category``       02        on which kind of text?
``noise_floor``               02        how far do equal things lie apart here?
``coverage_acceptance``       02, 05    how often is anything drafted, and how far right?
``architecture``              03        what does architecture alone change?
``experts_touched``           03        how many experts does a pass read?
``roofline``                  04        is there idle compute?
``clocks``                    04        did the machine keep its pace?
``verify_cost``               05        what does a pass over several tokens cost?
``predicted_vs_measured``     05        was it foretold?
``break_even_map``            05        how right must a draft be?
``attribution``               05        where does a speed-up come from?
``replay_map``                05        which n-gram setting suits these prompts?
``timeline``                  05        where along an answer is anything drafted?
``draft_ladder``              06        what does a better or longer draft buy?
``lever_ranking``             07        what gains most, at what price?
``pareto``                    07        which settings give up nothing for nothing?
``concurrency``               07        what do parallel requests gain and lose?
``ledger_overview``           08        which claims hold?
``speedup_by_machine``        figures   does the answer change with the machine?
============================  ========  ====================================================
"""

from lab.show.figures.architecture import architecture
from lab.show.figures.attribution import attribution
from lab.show.figures.break_even_map import break_even_map
from lab.show.figures.climb import climb
from lab.show.figures.clocks import clocks
from lab.show.figures.concurrency import concurrency
from lab.show.figures.coverage_acceptance import coverage_acceptance
from lab.show.figures.draft_ladder import draft_ladder
from lab.show.figures.experts_touched import experts_touched
from lab.show.figures.forgetting import forgetting
from lab.show.figures.ledger_overview import ledger_overview
from lab.show.figures.lever_ranking import lever_ranking
from lab.show.figures.noise_floor import noise_floor
from lab.show.figures.pareto import pareto
from lab.show.figures.pool_vs_cache import pool_vs_cache
from lab.show.figures.predicted_vs_measured import predicted_vs_measured
from lab.show.figures.replay_map import replay_map
from lab.show.figures.roofline import roofline
from lab.show.figures.speedup_by_arm import speedup_by_arm
from lab.show.figures.speedup_by_category import speedup_by_category
from lab.show.figures.speedup_by_machine import speedup_by_machine
from lab.show.figures.speedup_by_state import speedup_by_state
from lab.show.figures.timeline import timeline
from lab.show.figures.verify_cost import verify_cost

__all__ = [
    "architecture",
    "attribution",
    "break_even_map",
    "climb",
    "clocks",
    "concurrency",
    "coverage_acceptance",
    "draft_ladder",
    "experts_touched",
    "forgetting",
    "ledger_overview",
    "lever_ranking",
    "noise_floor",
    "pareto",
    "pool_vs_cache",
    "predicted_vs_measured",
    "replay_map",
    "roofline",
    "speedup_by_arm",
    "speedup_by_category",
    "speedup_by_machine",
    "speedup_by_state",
    "timeline",
    "verify_cost",
]
