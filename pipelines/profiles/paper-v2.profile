# The published method's configuration with one codebook a row, as near as a choice of settings comes.
# What still differs is listed in xfp-method(7): outliers are left out of the fit and stored as residuals,
# cosines are those of what is stored, and zero rows count as 1.

mode          = v2
bits          = 2,3,4
balance       = 0
start         = quantile
lloyd-iters   = 20
outlier-sigma = 4
outlier-cap   = 0.02

# One floor for everything; the published code's default.
min-cos-strict = 0.98
min-cos-lazy   = 0.98

# What is not a layer's projection has no part in it: embeddings as they are, the output head in 8-bit floats.
format        = embedding=keep
lm-head       = fp8

# No floor: the largest candidate, met or not.
on-miss       = best

# Four experts decide for their stack, and they are the first.
moe-sample    = first:4
