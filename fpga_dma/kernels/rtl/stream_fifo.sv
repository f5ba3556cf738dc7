// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// A FIFO in block RAM. Who writes has made sure that there is room; `popped`
// tells it when a place gets free.

`default_nettype none

module stream_fifo #(
    parameter int WIDTH = 512,
    parameter int LG_DEPTH = 9
) (
    input wire clk,
    input wire rst_n,
    input wire in_valid,
    input wire [WIDTH-1:0] in_data,
    output wire out_valid,
    input wire out_ready,
    output wire [WIDTH-1:0] out_data,
    output wire popped
);
  logic [WIDTH-1:0] memory[0:(1<<LG_DEPTH)-1];
  logic [LG_DEPTH:0] write_place, read_place;
  logic [WIDTH-1:0] head;
  logic head_valid;

  wire stored = write_place != read_place;
  wire fetch = stored && (!head_valid || out_ready);

  assign out_valid = head_valid;
  assign out_data = head;
  assign popped = head_valid && out_ready;

  always_ff @(posedge clk) begin
    if (in_valid) memory[write_place[LG_DEPTH-1:0]] <= in_data;
    if (fetch) head <= memory[read_place[LG_DEPTH-1:0]];
  end

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      write_place <= '0;
      read_place <= '0;
      head_valid <= 1'b0;
    end else begin
      if (in_valid) write_place <= write_place + 1'b1;
      if (fetch) read_place <= read_place + 1'b1;
      if (fetch) head_valid <= 1'b1;
      else if (out_ready) head_valid <= 1'b0;
    end
  end
endmodule

`default_nettype wire
