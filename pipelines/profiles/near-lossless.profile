# What the source answers, nearly: of llama.cpp's types Q6_K is the counterpart.

# Six bits in groups of 16 for everything, embeddings and head included. More bits than six there are none, and so a
# unit that misses the floor narrowly has the best that there is.
mode           = v2c
bits           = 6
group-size     = 16
outlier-sigma  = auto
min-cos-strict = 0.9998
min-cos-lazy   = 0.9998
on-miss        = best

# With --calibrate, floors of outputs.
calibrated min-cos-strict = 0.9999
calibrated min-cos-lazy   = 0.9999
calibrated floor          = embedding=0.9998,lm_head=0.9998
