# As small as a model gets while most of its answers stay: for trying a model on a machine that it hardly fits.
# Judge it by its answers; cosines this low promise nothing.

# Attention carries the most of a model for the least of its weights: it keeps a strict floor. The gap between
# the two is what memory is saved with, since routed experts are most of the weights and each token meets few.
min-cos-strict = 0.98
min-cos-lazy   = 0.93
floor          = attention=0.99,linear_attention=0.99

# Nothing stays at source precision for want of a few hundredths.
on-miss        = best
