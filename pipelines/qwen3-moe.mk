# SPDX-License-Identifier: Apache-2.0
#
# A pipeline for one model, as a user would write it. Copy it, change it, then
#
#   make -f qwen3-moe.mk -j8
#
# as often as you like: only what depends on a changed line is done again.

MODEL = Qwen3-30B-A3B
OUT   = Qwen3-30B-A3B.xfp

PROFILE        = balanced
MIN_COS_LAZY   = 0.993

include $(shell xfp --pipelines)/convert.mk
