"""Fitting: settings, starting factors, the iteration loop, its observers, and model selection.

================= ===========================================================================
decompose         the main function: settings in, Solution out
cost              memory and time of a fit before it begins
memory_model      the bytes of a fit, counted
memory_check      whether they fit into the memory that is available
calibration       the seconds of an evaluation, from short runs on smaller data
settings          the options of a fit as frozen values, each described and validated once
starts            starting factors
loop              the only iteration loop; a solver makes each step
stopping          the state of the loop, with the best factor so far, and the stopping tests
observers         objects notified after each step: history, callback
narration         the observer that logs progress
checkpoint        the file from which a fit is resumed
resuming          the observer that writes it, and how the loop state is restored from it
holdout           held-out pairs, and how well a fit predicts them
selection         rank and model selection by held-out pairs
rank_selection    the result of a selection
link_evaluation   hidden links and negatives, and how well scores tell them apart
link_metrics      AUC, average precision, Hits@k and MRR
normalised_graph  a graph divided by its regularised degrees
averaging         the mean of several fits
docstrings        parse and rebuild the parameter section of a docstring
================= ===========================================================================
"""
