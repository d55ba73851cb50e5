# Point H1.5 of the published search for floors, on a model of 397 billion weights in two GPUs of 96 GB: mode v2a with 2
# or 4 bits, 20 rounds for everything, routed experts too.
# It is where the search ended: 3.4 bits a weight, and 66.72 % of GSM8K in one run.

profile         = paper-v2a
min-cos-strict  = 0.96
min-cos-lazy    = 0.93
moe-lloyd-iters = 20
