# What a conversion takes that names no profile: of llama.cpp's types Q4_K_M is the counterpart.

# Four bits for most weights, five where few weights carry much: attention, embeddings, the output head.
min-cos-strict = 0.998
min-cos-lazy   = 0.995
floor          = attention=0.9995,linear_attention=0.9995
floor          = embedding=0.999,lm_head=0.9995

# With --calibrate, floors of outputs, for no more bits in all. Outputs of some models may need more than six bits; they
# have the best then.
calibrated min-cos-strict = 0.9989
calibrated min-cos-lazy   = 0.9989
calibrated floor          = attention=0.99994,linear_attention=0.99994
calibrated floor          = embedding=0.999,lm_head=0.99997
calibrated on-miss        = best
