# SPDX-License-Identifier: Apache-2.0
#
# regenerate.mk - make a published bundle again, from its checkpoint and itself, and see that the bytes are
# the same:
#
#   make -f regenerate.mk MODEL=Qwen3-30B-A3B LIKE=Qwen3-30B-A3B.xfp OUT=again/Qwen3-30B-A3B.xfp
#
# It prints the SHA-256 and OUT when they are. When they are not it fails (xfp's own status, 4, is in make's
# message), naming the first member that differs, and OUT stays to be looked at. CACHE, WORK and -j are as for
# convert.mk; other settings are LIKE's, and one that contradicts them is refused.

xfp_missing = $(strip $(foreach name,MODEL LIKE OUT,$(if $($(name)),,$(name))))
$(if $(xfp_missing),$(error set $(xfp_missing), as in \
	make -f regenerate.mk MODEL=folder LIKE=published.xfp OUT=again.xfp))

include $(dir $(lastword $(MAKEFILE_LIST)))convert.mk
