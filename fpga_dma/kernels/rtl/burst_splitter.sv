// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Cuts a run of neighbouring beats (64 bytes) into AXI bursts: at most
// `limit` beats each, none across 4 KiB (AMBA AXI, A3.4.1).

`default_nettype none

module burst_splitter (
    input wire clk,
    input wire rst_n,
    input wire [6:0] limit,  // 1 .. 64, constant while a run is in work
    input wire abort,        // forget what is left of the run
    // The run: a multiple of 64 bytes, at least one beat.
    input wire run_valid,
    output wire run_ready,
    input wire [63:0] run_address,
    input wire [24:0] run_beats,
    // Bursts.
    output wire burst_valid,
    input wire burst_ready,
    output wire [63:0] burst_address,
    output wire [6:0] burst_beats
);
  logic [57:0] beat;
  logic [24:0] left;
  wire busy = left != 25'd0;

  wire [6:0] to_boundary = 7'd64 - {1'b0, beat[5:0]};
  wire [6:0] allowed = limit < to_boundary ? limit : to_boundary;
  wire is_last = left <= {18'd0, allowed};

  assign burst_beats = is_last ? left[6:0] : allowed;
  assign burst_address = {beat, 6'd0};
  assign burst_valid = busy && !abort;
  assign run_ready = !busy && !abort;

  always_ff @(posedge clk) begin
    if (!rst_n || abort) begin
      left <= 25'd0;
    end else if (run_valid && run_ready) begin
      beat <= run_address[63:6];
      left <= run_beats;
    end else if (burst_valid && burst_ready) begin
      beat <= beat + {51'd0, burst_beats};
      left <= left - {18'd0, burst_beats};
    end
  end

  wire unused = &{1'b0, run_address[5:0]};
endmodule

`default_nettype wire
