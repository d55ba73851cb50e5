# The published method with one codebook a row: mode v2 with 2, 3 or 4 bits; 20 rounds, 5 for routed experts. It is as
# near as a choice of settings comes. What still differs is listed in xfp-method(7): outliers are left out of the fit
# and stored as residuals, cosines are those of what is stored, and zero rows count as 1.

mode          = v2
bits          = 2,3,4
balance       = 0
start         = quantile
lloyd-iters   = 20
outlier-sigma = 4
outlier-cap   = 0.02

# Experts are nine tenths of what is fitted, and published with fewer rounds than the rest.
moe-lloyd-iters = 5

# Two floors, strict and lazy: the published search came to these for its largest model (its point H1.5). The figures
# for this mode were measured before there were two, at 0.98 for everything.
min-cos-strict = 0.96
min-cos-lazy   = 0.93

# What is not a layer's projection has no part in it: embeddings as they are, the output head in 8-bit floats.
format        = embedding=keep
lm-head       = fp8

# No floor: the largest candidate, met or not.
on-miss       = best

# Four experts decide for their stack, and they are the first.
moe-sample    = first:4
