# For a machine that balanced does not fit: of llama.cpp's types Q3_K_M is the counterpart.

# Three bits for routed experts, which are most of the weights and of which each token meets few; four elsewhere.
min-cos-strict = 0.995
min-cos-lazy   = 0.99
floor          = attention=0.998,linear_attention=0.998
floor          = embedding=0.995,lm_head=0.999

# With --calibrate, floors of outputs, for no more bits in all. Outputs of some models may need more than six bits; they
# have the best then.
calibrated min-cos-strict = 0.9989
calibrated min-cos-lazy   = 0.9955
calibrated floor          = attention=0.9994,linear_attention=0.9994
calibrated floor          = embedding=0.999,lm_head=0.9999
calibrated on-miss        = best
