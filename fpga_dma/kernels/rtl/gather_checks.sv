// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// What can be known to be wrong with a launch of kv_gather from its arguments.

`default_nettype none

module gather_checks (
    input wire [63:0] pool,
    input wire [63:0] table_address,
    input wire [31:0] num_entries,
    input wire [31:0] table_entries,
    input wire [31:0] page_stride_beats,
    input wire [31:0] slice_beat,
    input wire [31:0] slice_beats,
    input wire tuning_bad,
    output logic [3:0] code,  // of KernelError, 0 if all is well
    output logic [63:0] detail
);
  localparam logic [3:0] BAD_GEOMETRY = 4'd3, ZERO_LENGTH = 4'd4,
      TABLE_RANGE = 4'd5, SLICE_RANGE = 4'd7, ALIGNMENT = 4'd13;

  wire [32:0] slice_end = {1'b0, slice_beat} + {1'b0, slice_beats};
  // Strides of at most 1 GiB and bases below 2^48 keep every sum in 64 bits.
  wire stride_bad =
      page_stride_beats == 32'd0 || page_stride_beats > 32'h0100_0000;

  always_comb begin
    code = 4'd0;
    detail = 64'd0;
    if (num_entries == 32'd0 || slice_beats == 32'd0) begin
      code = ZERO_LENGTH;
    end else if (num_entries > table_entries ||
                 num_entries > 32'h1000_0000) begin
      code = TABLE_RANGE;
      detail = {32'd0, num_entries - 32'd1};
    end else if (pool[11:0] != 12'd0 || pool[63:48] != 16'd0) begin
      code = ALIGNMENT;
      detail = pool;
    end else if (table_address[5:0] != 6'd0 || table_address[63:48] != 16'd0) begin
      code = ALIGNMENT;
      detail = table_address;
    end else if (stride_bad) begin
      code = BAD_GEOMETRY;
      detail = {32'd0, page_stride_beats};
    end else if (tuning_bad) begin
      code = BAD_GEOMETRY;
    end else if (slice_end > {1'b0, page_stride_beats}) begin
      code = SLICE_RANGE;
      detail = {31'd0, slice_end};
    end
  end
endmodule

`default_nettype wire
