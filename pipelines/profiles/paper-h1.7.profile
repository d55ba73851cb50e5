# Point H1.7 of the published search for floors, on a model of 397 billion weights in two GPUs of 96 GB: mode v2a with 2
# or 4 bits, 20 rounds for everything, routed experts too.
# It did not fit, in three attempts.

profile         = paper-v2a
min-cos-strict  = 0.96
min-cos-lazy    = 0.935
moe-lloyd-iters = 20
