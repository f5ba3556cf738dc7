// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The status of a kernel's launches: the codes of KernelError (kernel_abi.h).
// The first error in time stays until the host clears it. Of two in the same
// cycle a kernel reports the one of the bus: what an item holds is not to be
// trusted then.
//
//   word 0  code              word 4  items done by the last launch
//   word 1  item              word 5  bad items since the last clear
//   word 2  detail, low       word 6  launches since the last clear, refused
//   word 3  detail, high              ones included
//                             word 7  cycles of the last launch

`default_nettype none

module job_status (
    input wire clk,
    input wire rst_n,
    input wire clear,
    input wire launch,  // for a cycle
    input wire running,
    input wire error,   // for a cycle
    input wire [3:0] code,
    input wire [31:0] item,
    input wire [63:0] detail,
    input wire bad_item,   // for a cycle; counted
    input wire item_done,  // for a cycle; counted
    output wire [255:0] status,
    output wire stopped  // an error is there
);
  logic [3:0] first_code;
  logic [31:0] first_item, items_done, bad_items, launches, cycles;
  logic [63:0] first_detail;

  assign stopped = first_code != 4'd0;
  assign status = {
    cycles, launches, bad_items, items_done, first_detail, first_item, 28'd0, first_code
  };

  always_ff @(posedge clk) begin
    if (!rst_n || clear) begin
      first_code <= 4'd0;
      first_item <= 32'd0;
      first_detail <= 64'd0;
      bad_items <= 32'd0;
      launches <= 32'd0;
    end else begin
      if (error && !stopped) begin
        first_code <= code;
        first_item <= item;
        first_detail <= detail;
      end
      if (bad_item) bad_items <= bad_items + 32'd1;
      if (launch) launches <= launches + 32'd1;
    end
    if (!rst_n || launch) begin
      items_done <= 32'd0;
      cycles <= 32'd0;
    end else begin
      if (item_done) items_done <= items_done + 32'd1;
      if (running) cycles <= cycles + 32'd1;
    end
  end
endmodule

`default_nettype wire
