# SPDX-License-Identifier: Apache-2.0
#
# conversion/: what a conversion computes; commands/ parses, calls and prints.

noinst_LIBRARIES += conversion/libconversion.a
conversion_libconversion_a_SOURCES = \
	conversion/estimate/disk.c \
	conversion/estimate/estimate.c \
	conversion/estimate/estimate.h \
	conversion/estimate/footprint.c \
	conversion/estimate/footprint.h \
	conversion/estimate/gpu.c \
	conversion/estimate/gpu.h \
	conversion/estimate/groups.c \
	conversion/estimate/groups.h
