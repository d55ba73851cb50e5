# Point G of the published search for floors, on a model of 397 billion weights in two GPUs of 96 GB: mode v2a with 2
# or 4 bits, 20 rounds for everything, routed experts too.
# It was the first to fit, at 2.3 bits a weight, and its answers were garbage.

profile         = paper-v2a
min-cos-strict  = 0.92
min-cos-lazy    = 0.80
moe-lloyd-iters = 20
