# Copyright 2026 The PagedKV Authors
# SPDX-License-Identifier: Apache-2.0
#
# Run before synthesis: 2 DSP slices for each f32 multiplier and adder (AMD
# PG060, "full usage"), as docs/fpga_kernels.md counts.

config_op fmul -impl fulldsp
config_op fadd -impl fulldsp
config_op fsub -impl fulldsp
