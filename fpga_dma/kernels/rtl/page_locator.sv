// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Page index -> address, and whether the pool has that page. What comes out of
// a bad index is marked and carries the address of page 0, so that no later
// mistake can turn it into an access outside the pool. Four cycles, one index
// per cycle.

`default_nettype none

module page_locator (
    input wire clk,
    input wire rst_n,
    // Constant while indices are in work.
    input wire [63:0] base,
    input wire [31:0] num_pages,
    input wire [24:0] stride_beats,
    input wire in_valid,
    output wire in_ready,
    input wire [31:0] in_page,
    output wire out_valid,
    input wire out_ready,
    output wire [63:0] out_address,
    output wire [31:0] out_page,
    output wire out_bad
);
  logic [3:0] valid, bad;
  logic [31:0] page[0:3];
  logic [56:0] product1, product2;
  logic [63:0] address;

  wire move = !valid[3] || out_ready;
  wire in_bad = in_page >= num_pages;

  assign in_ready = move;
  assign out_valid = valid[3];
  assign out_address = address;
  assign out_page = page[3];
  assign out_bad = bad[3];

  // The product takes two stages, which synthesis moves into the multipliers.
  always_ff @(posedge clk) begin
    if (!rst_n) valid <= 4'd0;
    else if (move) valid <= {valid[2:0], in_valid};
    if (move) begin
      bad <= {bad[2:0], in_bad};
      page[0] <= in_page;
      page[1] <= page[0];
      page[2] <= page[1];
      page[3] <= page[2];
      product1 <= {25'd0, page[0]} * {32'd0, stride_beats};
      product2 <= product1;
      address <= bad[2] ? base : base + {1'b0, product2, 6'd0};
    end
  end
endmodule

`default_nettype wire
