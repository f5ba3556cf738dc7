// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// One item of kv_mover -> runs of beats to read and to write. Every run is
// checked against its page before either side hears of it.
//
// An item is a beat of words: source_page, target_page, source_beat,
// target_beat (from the pages' starts), num_beats (of a run), num_runs,
// source_run_stride_beats, target_run_stride_beats; the others are 0.

`default_nettype none

module move_items (
    input wire clk,
    input wire rst_n,
    input wire [63:0] source,
    input wire [31:0] source_pages,
    input wire [24:0] source_stride_beats,
    input wire [63:0] target,
    input wire [31:0] target_pages,
    input wire [24:0] target_stride_beats,
    input wire item_valid,
    output wire item_ready,
    input wire [255:0] item,
    output wire item_done,  // for a cycle: all its runs were handed on
    output wire error,      // for a cycle: nothing more of the item is
    output logic [3:0] code,
    output logic [63:0] detail,
    output wire read_valid,
    input wire read_ready,
    output wire [63:0] read_address,
    output wire write_valid,
    input wire write_ready,
    output wire [63:0] write_address,
    output wire [24:0] run_beats,
    output wire idle
);
  localparam logic [3:0] ZERO_LENGTH = 4'd4, PAGE_INDEX = 4'd6,
      SLICE_RANGE = 4'd7;
  localparam logic [1:0] WAIT = 2'd0, LOCATE = 2'd1, RUNS = 2'd2, SEND = 2'd3;

  logic [1:0] state;
  logic [31:0] num_beats, runs_left;
  logic [31:0] source_run_stride, target_run_stride;
  logic [32:0] source_beat, target_beat;
  logic read_sent, write_sent;

  assign idle = state == WAIT;

  // ---- Pages ----

  wire source_ready, target_ready, source_located, target_located;
  wire source_bad, target_bad;
  wire [63:0] source_address, target_address;
  wire [31:0] source_index, target_index;
  wire locators_ready = source_ready && target_ready;
  wire leave = error || item_done;
  wire take = item_valid && item_ready;
  assign item_ready = state == WAIT && locators_ready;

  page_locator source_locator (
      .clk,
      .rst_n,
      .base(source),
      .num_pages(source_pages),
      .stride_beats(source_stride_beats),
      .in_valid(take),
      .in_ready(source_ready),
      .in_page(item[31:0]),
      .out_valid(source_located),
      .out_ready(leave),
      .out_address(source_address),
      .out_page(source_index),
      .out_bad(source_bad)
  );

  page_locator target_locator (
      .clk,
      .rst_n,
      .base(target),
      .num_pages(target_pages),
      .stride_beats(target_stride_beats),
      .in_valid(take),
      .in_ready(target_ready),
      .in_page(item[63:32]),
      .out_valid(target_located),
      .out_ready(leave),
      .out_address(target_address),
      .out_page(target_index),
      .out_bad(target_bad)
  );

  // ---- Checks ----

  wire [33:0] source_end = {1'b0, source_beat} + {2'd0, num_beats};
  wire [33:0] target_end = {1'b0, target_beat} + {2'd0, num_beats};
  wire several = runs_left > 32'd1;

  always_comb begin
    code = 4'd0;
    detail = 64'd0;
    if (num_beats == 32'd0 || runs_left == 32'd0) begin
      code = ZERO_LENGTH;
    end else if (source_bad) begin
      code = PAGE_INDEX;
      detail = {32'd0, source_index};
    end else if (target_bad) begin
      code = PAGE_INDEX;
      detail = {32'd0, target_index};
    end else if (several && source_run_stride < num_beats) begin
      code = SLICE_RANGE;
      detail = {32'd0, source_run_stride};
    end else if (several && target_run_stride < num_beats) begin
      code = SLICE_RANGE;
      detail = {32'd0, target_run_stride};
    end else if (source_end > {9'd0, source_stride_beats}) begin
      code = SLICE_RANGE;
      detail = {30'd0, source_end};
    end else if (target_end > {9'd0, target_stride_beats}) begin
      code = SLICE_RANGE;
      detail = {30'd0, target_end};
    end
  end

  // ---- Runs ----

  wire read_moves = read_valid && read_ready;
  wire write_moves = write_valid && write_ready;
  wire run_done = state == SEND && (read_sent || read_moves) &&
      (write_sent || write_moves);

  assign error = state == RUNS && code != 4'd0;
  assign item_done = run_done && !several;
  assign read_valid = state == SEND && !read_sent;
  assign write_valid = state == SEND && !write_sent;
  assign read_address = source_address + {25'd0, source_beat, 6'd0};
  assign write_address = target_address + {25'd0, target_beat, 6'd0};
  assign run_beats = num_beats[24:0];

  always_ff @(posedge clk) begin
    if (!rst_n) state <= WAIT;
    else begin
      case (state)
        WAIT: if (take) state <= LOCATE;
        LOCATE: if (source_located && target_located) state <= RUNS;
        RUNS: state <= error ? WAIT : SEND;
        default: if (run_done) state <= several ? RUNS : WAIT;
      endcase
    end
    if (state != SEND || run_done) begin
      read_sent <= 1'b0;
      write_sent <= 1'b0;
    end else begin
      if (read_moves) read_sent <= 1'b1;
      if (write_moves) write_sent <= 1'b1;
    end
    if (take) begin
      source_beat <= {1'b0, item[95:64]};
      target_beat <= {1'b0, item[127:96]};
      num_beats <= item[159:128];
      runs_left <= item[191:160];
      source_run_stride <= item[223:192];
      target_run_stride <= item[255:224];
    end else if (run_done) begin
      source_beat <= source_beat + {1'b0, source_run_stride};
      target_beat <= target_beat + {1'b0, target_run_stride};
      runs_left <= runs_left - 32'd1;
    end
  end
endmodule

`default_nettype wire
