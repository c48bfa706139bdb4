"""A fit: its settings, its start, the one loop that moves it, and those who watch the loop.

================= ===========================================================================
decompose         the function: settings in, Solution out
settings          the options of a fit as values, each described and checked once
starts            where a fit begins
loop              the only loop; a solver makes each step
stopping          when the loop stops, and which factor is the best so far
observers         those who are told of each step: history, callback
narration         the observer that prints
checkpoint        the file a fit is resumed from
resuming          the observer that writes it, and how the loop starts from it
holdout           pairs hidden from a fit, and how well it predicts them
selection         rank and model chosen by hidden pairs
rank_selection    what that found
docstrings        parameters of a docstring, read and put together
================= ===========================================================================
"""
