# The published method with libraries: mode v2a with 2 or 4 bits; 20 rounds, 5 for routed experts. Groups have 128
# weights, a unit shares 32 codebooks, and a group takes the one nearest to its own. It is as near as a choice of
# settings comes. What still differs is listed in xfp-method(7): fp16 numbers are rounded before indices are chosen,
# cosines are those of what is stored, zero rows count as 1, and k-means starts from a generator that is the same
# everywhere.

mode          = v2a
bits          = 2,4
group-size    = 128
library-size  = 32
libfit        = published
lloyd-iters   = 20
balance       = 0

# Experts are nine tenths of what is fitted, and published with fewer rounds than the rest.
moe-lloyd-iters = 5

# As the paper has them, for both modes alike. Its code stores none in this one: that is --outlier-sigma none.
outlier-sigma = 4
outlier-cap   = 0.02

# Two floors, strict and lazy: the published search came to these for its largest model (its point H1.5).
min-cos-strict = 0.96
min-cos-lazy   = 0.93

# What is not a layer's projection has no part in it: embeddings as they are, the output head in 8-bit floats.
format        = embedding=keep
lm-head       = fp8

# No floor: the largest candidate, met or not.
on-miss       = best

# Four experts decide for their stack, and they are the first.
moe-sample    = first:4
