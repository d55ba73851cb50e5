# The published method's configuration with libraries, as near as a choice of settings comes: groups of 128
# weights, 32 codebooks that a unit shares, entries chosen by the distance of codebooks, no outliers.
# What still differs is listed in xfp-method(7): fp16 numbers are rounded before indices are chosen, cosines are
# those of what is stored, zero rows count as 1, and k-means starts from a generator that is the same everywhere.

mode          = v2a
bits          = 2,4
group-size    = 128
library-size  = 32
libfit        = published
lloyd-iters   = 20
outlier-sigma = none
balance       = 0

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
