# SPDX-License-Identifier: Apache-2.0
#
# pipelines/: make rules and data, installed under the same names below $(pkgdatadir). How a tool finds
# them is in stages/settings/data.h.

nobase_dist_pkgdata_DATA += \
	pipelines/calibration/README.md \
	pipelines/calibration/calibration-1.txt \
	pipelines/convert.mk \
	pipelines/families/bert.family \
	pipelines/families/deepseek.family \
	pipelines/families/ernie4_5.family \
	pipelines/families/gemma.family \
	pipelines/families/general.family \
	pipelines/families/glm4_moe.family \
	pipelines/families/glm4_moe_lite.family \
	pipelines/families/gpt_oss.family \
	pipelines/families/llama.family \
	pipelines/families/llama4.family \
	pipelines/families/minimax_m2.family \
	pipelines/families/mixtral.family \
	pipelines/families/phi3.family \
	pipelines/families/qwen2.family \
	pipelines/families/qwen3.family \
	pipelines/families/qwen3_5.family \
	pipelines/families/qwen3_5_moe.family \
	pipelines/families/qwen3_moe.family \
	pipelines/families/qwen3_next.family \
	pipelines/graph.mk \
	pipelines/profiles/balanced.profile \
	pipelines/profiles/careful.profile \
	pipelines/profiles/near-lossless.profile \
	pipelines/profiles/paper-g.profile \
	pipelines/profiles/paper-h.profile \
	pipelines/profiles/paper-h1.profile \
	pipelines/profiles/paper-h1.5.profile \
	pipelines/profiles/paper-h1.7.profile \
	pipelines/profiles/paper-v2.profile \
	pipelines/profiles/paper-v2a.profile \
	pipelines/profiles/small.profile \
	pipelines/profiles/smallest.profile \
	pipelines/qwen3-moe.mk \
	pipelines/regenerate.mk \
	pipelines/unit.mk

nobase_dist_pkgdata_SCRIPTS = \
	pipelines/slurm/convert.sbatch \
	pipelines/slurm/ssh-launcher
