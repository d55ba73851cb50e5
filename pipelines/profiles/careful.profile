# For a bundle that replaces its source: of llama.cpp's types Q5_K_M is the counterpart.

# Five bits for most weights, six for attention.
min-cos-strict = 0.999
min-cos-lazy   = 0.999
floor          = attention=0.9998,linear_attention=0.9998
floor          = embedding=0.999,lm_head=0.9995

# With --calibrate, floors of outputs, for no more bits in all. Outputs of some models may need more than six bits; they
# have the best then.
calibrated min-cos-strict = 0.99972
calibrated min-cos-lazy   = 0.99972
calibrated floor          = attention=0.99994,linear_attention=0.99994
calibrated floor          = embedding=0.9997,lm_head=0.99997
calibrated on-miss        = best
