# SPDX-License-Identifier: Apache-2.0
#
# commands/: the front end, a folder for each large command.

if CONVERTER
noinst_LIBRARIES += commands/compare/peers/libpeers.a
endif
commands_compare_peers_libpeers_a_SOURCES = \
	commands/compare/peers/blocks.h \
	commands/compare/peers/int4.c \
	commands/compare/peers/iq4.c \
	commands/compare/peers/k_min.c \
	commands/compare/peers/k_scale.c \
	commands/compare/peers/min.c \
	commands/compare/peers/min.h \
	commands/compare/peers/peers.c \
	commands/compare/peers/peers.h \
	commands/compare/peers/scale.h
