"""Statements of what is true, beside what annotators say.

- `calibration`: `raters.calibrate`, from a fit and known truths to statements; what is special to
  classes and to orders is in `raters.kinds.labels.truth` and `raters.kinds.orders`.
- `statements`, `gold_weights`: what is said, what is known, and its weight.
- `true_classes`, `true_orders`: draws of the truth, with the equations.
- `annotator_accuracy`: draws of the annotators' accuracies, by `slice_sampling`.
- `anchor_check`: what the known truths alone say, and comparisons of two judges.
"""
