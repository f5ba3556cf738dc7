// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The AXI4-Lite registers of a kernel that XRT starts with ap_ctrl_chain (UG1393,
// "Control Requirements for XRT-Managed Kernels").
//
//   0x00  bit 0 ap_start     write 1; 0 again when the kernel has taken it
//         bit 1 ap_done      until ap_continue is written
//         bit 2 ap_idle
//         bit 3 ap_ready     arguments were taken; cleared by reading
//         bit 4 ap_continue  write 1
//   0x04  bit 0 global interrupt enable
//   0x08  interrupt enable   bit 0 done, bit 1 ready
//   0x0C  interrupt status   the same; write 1 to toggle
//   0x10  + 4 i, argument word i (64-bit arguments: low word first)
//   0x80  + 4 i, status word i; writing 0x80 clears the status
//
// A start that is written while the kernel runs is taken when the run before
// it was done and continued. Arguments are copied when a run starts.

`default_nettype none

module control_registers #(
    parameter int ARGUMENTS = 8,  // words, at most 28
    parameter int STATUS = 8      // words, at most 32
) (
    input wire clk,
    input wire rst_n,
    input wire s_awvalid,
    output wire s_awready,
    input wire [7:0] s_awaddr,
    input wire s_wvalid,
    output wire s_wready,
    input wire [31:0] s_wdata,
    input wire [3:0] s_wstrb,
    output wire s_bvalid,
    input wire s_bready,
    output wire [1:0] s_bresp,
    input wire s_arvalid,
    output wire s_arready,
    input wire [7:0] s_araddr,
    output wire s_rvalid,
    input wire s_rready,
    output wire [31:0] s_rdata,
    output wire [1:0] s_rresp,
    output wire irq,
    output wire start,  // for a cycle; arguments are valid in the next one
    input wire done,    // for a cycle
    output wire [32*ARGUMENTS-1:0] arguments,
    input wire [32*STATUS-1:0] status,
    output wire clear_status
);
  logic start_asked, running, done_held, ready_held;
  logic b_valid, r_valid, global_enable;
  logic [1:0] enable, pending;
  logic [31:0] r_data;
  logic [32*ARGUMENTS-1:0] written, taken;

  wire write = s_awvalid && s_wvalid && !b_valid;
  wire read = s_arvalid && !r_valid;
  wire [5:0] write_word = s_awaddr[7:2];
  wire [5:0] read_word = s_araddr[7:2];
  wire write_control = write && s_wstrb[0] && write_word == 6'd0;
  wire continued = write_control && s_wdata[4];
  wire [1:0] toggled =
      write && s_wstrb[0] && write_word == 6'd3 ? s_wdata[1:0] : 2'd0;

  assign s_awready = write;
  assign s_wready = write;
  assign s_bvalid = b_valid;
  assign s_bresp = 2'd0;
  assign s_arready = read;
  assign s_rvalid = r_valid;
  assign s_rdata = r_data;
  assign s_rresp = 2'd0;
  assign irq = global_enable && (enable & pending) != 2'd0;
  assign start = start_asked && !running && !done_held;
  assign arguments = taken;
  assign clear_status = write && write_word == 6'd32;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      start_asked <= 1'b0;
      running <= 1'b0;
      done_held <= 1'b0;
      ready_held <= 1'b0;
      global_enable <= 1'b0;
      enable <= 2'd0;
      pending <= 2'd0;
    end else begin
      if (write_control && s_wdata[0]) start_asked <= 1'b1;
      else if (start) start_asked <= 1'b0;
      if (start) running <= 1'b1;
      else if (done) running <= 1'b0;
      if (done) done_held <= 1'b1;
      else if (continued) done_held <= 1'b0;
      if (start) ready_held <= 1'b1;
      else if (read && read_word == 6'd0) ready_held <= 1'b0;
      if (write && s_wstrb[0] && write_word == 6'd1) global_enable <= s_wdata[0];
      if (write && s_wstrb[0] && write_word == 6'd2) enable <= s_wdata[1:0];
      pending <= (pending ^ toggled) | ({start, done} & enable);
    end
    if (start) taken <= written;
  end

  always_ff @(posedge clk) begin
    if (!rst_n) written <= '0;
    else if (write) begin
      for (int i = 0; i < ARGUMENTS; i++) begin
        for (int b = 0; b < 4; b++) begin
          if (write_word == 6'd4 + i[5:0] && s_wstrb[b])
            written[32*i+8*b+:8] <= s_wdata[8*b+:8];
        end
      end
    end
  end

  // Reading.
  logic [31:0] selected;
  always_comb begin
    selected = 32'd0;
    case (read_word)
      6'd0: selected = {27'd0, 1'b0, ready_held, !running, done_held, start_asked};
      6'd1: selected = {31'd0, global_enable};
      6'd2: selected = {30'd0, enable};
      6'd3: selected = {30'd0, pending};
      default: begin
        for (int i = 0; i < ARGUMENTS; i++)
          if (read_word == 6'd4 + i[5:0]) selected = written[32*i+:32];
        for (int i = 0; i < STATUS; i++)
          if (read_word == 6'd32 + i[5:0]) selected = status[32*i+:32];
      end
    endcase
  end

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      b_valid <= 1'b0;
      r_valid <= 1'b0;
    end else begin
      b_valid <= write || (b_valid && !s_bready);
      r_valid <= read || (r_valid && !s_rready);
    end
    if (read) r_data <= selected;
  end

  wire unused = &{1'b0, s_awaddr[1:0], s_araddr[1:0]};
endmodule

`default_nettype wire
