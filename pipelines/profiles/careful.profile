# For a bundle that replaces its source: nobody should be able to tell the two apart.

# A floor of 0.98 lands on three bits, which the method's authors measured to be unsafe for attention. These take
# four to six.
min-cos-strict = 0.997
min-cos-lazy   = 0.995
floor          = attention=0.998,linear_attention=0.998

# The output head as it is: its errors go straight into the answer.
lm-head        = keep

# What no candidate serves stays at source precision. (The default, and so here whatever the default.)
on-miss        = keep

# All experts decide for their stack: the worst ones are those that a sample misses. (Likewise.)
moe-sample     = 0
