// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What can be known to be wrong with a launch of kv_mover from its arguments.

`default_nettype none

module mover_checks (
    input wire [63:0] work,
    input wire [63:0] source,
    input wire [63:0] target,
    input wire [31:0] num_items,
    input wire [31:0] max_items,
    input wire [31:0] source_stride_beats,
    input wire [31:0] target_stride_beats,
    input wire tuning_bad,
    output logic [3:0] code,  // of KernelError, 0 if all is well
    output logic [63:0] detail
);
  localparam logic [3:0] TOO_MANY = 4'd2, BAD_GEOMETRY = 4'd3,
      ZERO_LENGTH = 4'd4, ALIGNMENT = 4'd13;

  function automatic logic stride_bad(input logic [31:0] stride);
    stride_bad = stride == 32'd0 || stride > 32'h0100_0000;
  endfunction
  wire source_bad = source[11:0] != 12'd0 || source[63:48] != 16'd0;
  wire target_bad = target[11:0] != 12'd0 || target[63:48] != 16'd0;

  always_comb begin
    code = 4'd0;
    detail = 64'd0;
    if (num_items == 32'd0) begin
      code = ZERO_LENGTH;
    end else if (num_items > max_items || num_items > 32'h0010_0000) begin
      code = TOO_MANY;
      detail = {32'd0, num_items};
    end else if (work[5:0] != 6'd0 || work[63:48] != 16'd0) begin
      code = ALIGNMENT;
      detail = work;
    end else if (source_bad) begin
      code = ALIGNMENT;
      detail = source;
    end else if (target_bad) begin
      code = ALIGNMENT;
      detail = target;
    end else if (stride_bad(source_stride_beats)) begin
      code = BAD_GEOMETRY;
      detail = {32'd0, source_stride_beats};
    end else if (stride_bad(target_stride_beats)) begin
      code = BAD_GEOMETRY;
      detail = {32'd0, target_stride_beats};
    end else if (tuning_bad) begin
      code = BAD_GEOMETRY;
    end
  end
endmodule

`default_nettype wire
