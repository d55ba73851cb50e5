# As small as a model gets while most of its answers stay: of llama.cpp's types Q2_K is the counterpart.
# Judge it by its answers; cosines this low promise nothing.

# Two bits for routed experts, three for other matrices, and more for what is small and carries much.
min-cos-strict = 0.98
min-cos-lazy   = 0.965
floor          = attention=0.999,linear_attention=0.999
floor          = embedding=0.995,lm_head=0.998

# With --calibrate, floors of outputs, for no more bits in all.
calibrated min-cos-strict = 0.995
calibrated min-cos-lazy   = 0.9863
calibrated floor          = attention=0.9995,linear_attention=0.9995
calibrated floor          = embedding=0.995,lm_head=0.9996

# Nothing stays at source precision for want of a few hundredths.
on-miss        = best
