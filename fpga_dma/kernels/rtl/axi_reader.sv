// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs of beats -> AXI4 read bursts -> a FIFO. A burst is asked for only when
// the FIFO has room for all of it, so RREADY never goes low and a slow
// consumer never blocks the memory for others. One ID: answers are in order.

`default_nettype none

module axi_reader #(
    parameter int LG_DEPTH = 9  // of the FIFO, in beats; at least 6
) (
    input wire clk,
    input wire rst_n,
    input wire [6:0] burst_limit,        // beats, 1 .. 64
    input wire [5:0] outstanding_limit,  // bursts, 1 .. 32
    input wire abort,                    // issue no more of the run
    input wire run_valid,
    output wire run_ready,
    input wire [63:0] run_address,
    input wire [24:0] run_beats,
    // AXI4 read channels.
    output wire m_arvalid,
    input wire m_arready,
    output wire [63:0] m_araddr,
    output wire [7:0] m_arlen,
    input wire m_rvalid,
    output wire m_rready,
    input wire [511:0] m_rdata,
    input wire m_rlast,
    input wire [1:0] m_rresp,
    // Beats, in the order of the runs.
    output wire out_valid,
    input wire out_ready,
    output wire [511:0] out_data,
    output wire bus_error,  // a beat came with an error response
    output wire idle        // nothing is asked for, nothing is in the FIFO
);
  localparam logic [LG_DEPTH:0] DEPTH = 1 << LG_DEPTH;

  logic [LG_DEPTH:0] room;
  logic [5:0] outstanding;
  logic ar_valid;
  logic [63:0] ar_address;
  logic [5:0] ar_length;

  wire burst_valid;
  wire [63:0] burst_address;
  wire [6:0] burst_beats;
  wire popped;
  wire fits = room >= {{(LG_DEPTH - 6) {1'b0}}, burst_beats};
  wire burst_ready =
      (!ar_valid || m_arready) && fits && outstanding < outstanding_limit;
  wire issue = burst_valid && burst_ready;
  wire burst_done = m_rvalid && m_rlast;

  assign m_arvalid = ar_valid;
  assign m_araddr = ar_address;
  assign m_arlen = {2'd0, ar_length};
  assign m_rready = 1'b1;
  assign bus_error = m_rvalid && m_rresp[1];
  assign idle = run_ready && room == DEPTH;

  burst_splitter splitter (
      .clk,
      .rst_n,
      .limit(burst_limit),
      .abort,
      .run_valid,
      .run_ready,
      .run_address,
      .run_beats,
      .burst_valid,
      .burst_ready,
      .burst_address,
      .burst_beats
  );

  stream_fifo #(
      .LG_DEPTH(LG_DEPTH)
  ) fifo (
      .clk,
      .rst_n,
      .in_valid(m_rvalid),
      .in_data(m_rdata),
      .out_valid,
      .out_ready,
      .out_data,
      .popped
  );

  wire [6:0] last_beat = burst_beats - 7'd1;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      room <= DEPTH;
      outstanding <= 6'd0;
      ar_valid <= 1'b0;
    end else begin
      room <= room - (issue ? {{(LG_DEPTH - 6) {1'b0}}, burst_beats} : '0) +
          {{LG_DEPTH{1'b0}}, popped};
      outstanding <= outstanding + {5'd0, issue} - {5'd0, burst_done};
      if (issue) ar_valid <= 1'b1;
      else if (m_arready) ar_valid <= 1'b0;
    end
    if (issue) begin
      ar_address <= burst_address;
      ar_length <= last_beat[5:0];
    end
  end

  wire unused = &{1'b0, m_rresp[0], last_beat[6]};
endmodule

`default_nettype wire
