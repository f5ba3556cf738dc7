// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs of beats and their data -> AXI4 write bursts. All bytes of every beat
// are written.

`default_nettype none

module axi_writer (
    input wire clk,
    input wire rst_n,
    input wire [6:0] burst_limit,        // beats, 1 .. 64
    input wire [5:0] outstanding_limit,  // bursts without a response, 1 .. 32
    input wire run_valid,
    output wire run_ready,
    input wire [63:0] run_address,
    input wire [24:0] run_beats,
    // Beats, in the order of the runs.
    input wire in_valid,
    output wire in_ready,
    input wire [511:0] in_data,
    // AXI4 write channels.
    output wire m_awvalid,
    input wire m_awready,
    output wire [63:0] m_awaddr,
    output wire [7:0] m_awlen,
    output wire m_wvalid,
    input wire m_wready,
    output wire [511:0] m_wdata,
    output wire [63:0] m_wstrb,
    output wire m_wlast,
    input wire m_bvalid,
    output wire m_bready,
    input wire [1:0] m_bresp,
    output wire bus_error,
    output wire idle  // every burst has its response
);
  logic [5:0] outstanding;
  logic aw_valid;
  logic [63:0] aw_address;
  logic [5:0] aw_length;
  logic [6:0] w_left;  // beats of the burst whose data moves

  wire burst_valid;
  wire [63:0] burst_address;
  wire [6:0] burst_beats;
  wire w_move = m_wvalid && m_wready;
  wire w_free = w_left == 7'd0 || (w_left == 7'd1 && w_move);
  wire burst_ready =
      (!aw_valid || m_awready) && w_free && outstanding < outstanding_limit;
  wire issue = burst_valid && burst_ready;

  assign m_awvalid = aw_valid;
  assign m_awaddr = aw_address;
  assign m_awlen = {2'd0, aw_length};
  assign m_wvalid = in_valid && w_left != 7'd0;
  assign in_ready = m_wready && w_left != 7'd0;
  assign m_wdata = in_data;
  assign m_wstrb = '1;
  assign m_wlast = w_left == 7'd1;
  assign m_bready = 1'b1;
  assign bus_error = m_bvalid && m_bresp[1];
  assign idle = run_ready && outstanding == 6'd0;

  burst_splitter splitter (
      .clk,
      .rst_n,
      .limit(burst_limit),
      .abort(1'b0),
      .run_valid,
      .run_ready,
      .run_address,
      .run_beats,
      .burst_valid,
      .burst_ready,
      .burst_address,
      .burst_beats
  );

  wire [6:0] last_beat = burst_beats - 7'd1;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      outstanding <= 6'd0;
      aw_valid <= 1'b0;
      w_left <= 7'd0;
    end else begin
      outstanding <= outstanding + {5'd0, issue} - {5'd0, m_bvalid};
      if (issue) aw_valid <= 1'b1;
      else if (m_awready) aw_valid <= 1'b0;
      if (issue) w_left <= burst_beats;
      else if (w_move) w_left <= w_left - 7'd1;
    end
    if (issue) begin
      aw_address <= burst_address;
      aw_length <= last_beat[5:0];
    end
  end

  wire unused = &{1'b0, m_bresp[0], last_beat[6]};
endmodule

`default_nettype wire
