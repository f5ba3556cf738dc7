// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads one slice of each page of a page table and streams the beats in the
// order of the table: what stands in front of a kernel that computes.
//
// Arguments (words of control_registers.sv):
//   0x10  pool               address; a multiple of 4 KiB, below 2^48
//   0x18  table              address of u32 page indices; a multiple of 64
//   0x20  num_entries        entries to gather, 1 .. 2^28
//   0x24  table_entries      entries that the table holds
//   0x28  num_pages          page indices are below it
//   0x2C  page_stride_beats  1 .. 2^24; a beat is 64 bytes
//   0x30  slice_beat         where the slice starts in its page
//   0x34  slice_beats        its length, >= 1; it ends inside the page
//   0x38  burst_beats        longest burst, 1 .. 64; 0: 64
//   0x3C  max_outstanding    bursts in flight, 1 .. 32; 0: 32
// Status: 0x80, see job_status.sv. Items are table entries.
//
// Every launch ends the stream with exactly one TLAST. If all entries are good
// it is on the last beat of the last slice. At the first bad page index nothing
// more is gathered, the rest of the table is only checked, so that the status
// counts all bad indices, and an empty beat (TKEEP 0) carries TLAST. A launch
// whose arguments are bad, or that finds an error in the status, sends that beat
// alone.

`default_nettype none

module kv_gather (
    input wire ap_clk,
    input wire ap_rst_n,
    /* verilator lint_off SYMRSVDWORD */
    output wire interrupt,  // the name that Vitis looks for
    /* verilator lint_on SYMRSVDWORD */
    input wire s_axi_control_awvalid,
    output wire s_axi_control_awready,
    input wire [7:0] s_axi_control_awaddr,
    input wire s_axi_control_wvalid,
    output wire s_axi_control_wready,
    input wire [31:0] s_axi_control_wdata,
    input wire [3:0] s_axi_control_wstrb,
    output wire s_axi_control_bvalid,
    input wire s_axi_control_bready,
    output wire [1:0] s_axi_control_bresp,
    input wire s_axi_control_arvalid,
    output wire s_axi_control_arready,
    input wire [7:0] s_axi_control_araddr,
    output wire s_axi_control_rvalid,
    input wire s_axi_control_rready,
    output wire [31:0] s_axi_control_rdata,
    output wire [1:0] s_axi_control_rresp,
    // Page table.
    output wire m_axi_table_arvalid,
    input wire m_axi_table_arready,
    output wire [63:0] m_axi_table_araddr,
    output wire [7:0] m_axi_table_arlen,
    output wire [2:0] m_axi_table_arsize,
    output wire [1:0] m_axi_table_arburst,
    input wire m_axi_table_rvalid,
    output wire m_axi_table_rready,
    input wire [511:0] m_axi_table_rdata,
    input wire m_axi_table_rlast,
    input wire [1:0] m_axi_table_rresp,
    // Pages.
    output wire m_axi_kv_arvalid,
    input wire m_axi_kv_arready,
    output wire [63:0] m_axi_kv_araddr,
    output wire [7:0] m_axi_kv_arlen,
    output wire [2:0] m_axi_kv_arsize,
    output wire [1:0] m_axi_kv_arburst,
    input wire m_axi_kv_rvalid,
    output wire m_axi_kv_rready,
    input wire [511:0] m_axi_kv_rdata,
    input wire m_axi_kv_rlast,
    input wire [1:0] m_axi_kv_rresp,
    // Gathered beats.
    output wire m_axis_kv_tvalid,
    input wire m_axis_kv_tready,
    output wire [511:0] m_axis_kv_tdata,
    output wire [63:0] m_axis_kv_tkeep,
    output wire m_axis_kv_tlast
);
  localparam logic [3:0] PAGE_INDEX = 4'd6, BUS = 4'd14;
  localparam logic [1:0] IDLE = 2'd0, CHECK = 2'd1, RUN = 2'd2, CLOSE = 2'd3;

  logic [1:0] state;
  logic bad_seen;  // in this launch
  logic [31:0] entries_checked, entries_sent;
  logic [24:0] slice_sent;
  logic [63:0] slice_base;

  wire start, clear_status, stopped, tuning_bad, last_move;
  wire [319:0] arguments;
  wire [255:0] status;
  wire [63:0] pool = arguments[63:0];
  wire [63:0] table_address = arguments[127:64];
  wire [31:0] num_entries = arguments[159:128];
  wire [31:0] table_entries = arguments[191:160];
  wire [31:0] num_pages = arguments[223:192];
  wire [31:0] page_stride_beats = arguments[255:224];
  wire [31:0] slice_beat = arguments[287:256];
  wire [31:0] slice_beats = arguments[319:288];
  wire [31:0] burst_argument, outstanding_argument;
  wire [6:0] burst_limit;
  wire [5:0] outstanding_limit;
  wire [3:0] launch_code;
  wire [63:0] launch_detail;

  wire done = (state == CLOSE && m_axis_kv_tready) || last_move;
  wire go = state == CHECK && launch_code == 4'd0 && !stopped;

  control_registers #(
      .ARGUMENTS(12)
  ) registers (
      .clk(ap_clk),
      .rst_n(ap_rst_n),
      .s_awvalid(s_axi_control_awvalid),
      .s_awready(s_axi_control_awready),
      .s_awaddr(s_axi_control_awaddr),
      .s_wvalid(s_axi_control_wvalid),
      .s_wready(s_axi_control_wready),
      .s_wdata(s_axi_control_wdata),
      .s_wstrb(s_axi_control_wstrb),
      .s_bvalid(s_axi_control_bvalid),
      .s_bready(s_axi_control_bready),
      .s_bresp(s_axi_control_bresp),
      .s_arvalid(s_axi_control_arvalid),
      .s_arready(s_axi_control_arready),
      .s_araddr(s_axi_control_araddr),
      .s_rvalid(s_axi_control_rvalid),
      .s_rready(s_axi_control_rready),
      .s_rdata(s_axi_control_rdata),
      .s_rresp(s_axi_control_rresp),
      .irq(interrupt),
      .start,
      .done,
      .arguments({outstanding_argument, burst_argument, arguments}),
      .status,
      .clear_status
  );

  job_limits limits (
      .burst_argument,
      .outstanding_argument,
      .burst_limit,
      .outstanding_limit,
      .bad(tuning_bad)
  );

  gather_checks checks (
      .pool,
      .table_address,
      .num_entries,
      .table_entries,
      .page_stride_beats,
      .slice_beat,
      .slice_beats,
      .tuning_bad,
      .code(launch_code),
      .detail(launch_detail)
  );

  // ---- Page table -> page indices -> slices ----

  wire table_ready_for_run, table_valid, table_ready, table_error, table_idle;
  wire [511:0] table_data;
  wire word_valid, word_ready;
  wire [31:0] word;
  wire [24:0] table_beats = num_entries[28:4] + {24'd0, |num_entries[3:0]};

  axi_reader #(
      .LG_DEPTH(7)
  ) table_port (
      .clk(ap_clk),
      .rst_n(ap_rst_n),
      .burst_limit,
      .outstanding_limit,
      .abort(1'b0),
      .run_valid(go),
      .run_ready(table_ready_for_run),
      .run_address(table_address),
      .run_beats(table_beats),
      .m_arvalid(m_axi_table_arvalid),
      .m_arready(m_axi_table_arready),
      .m_araddr(m_axi_table_araddr),
      .m_arlen(m_axi_table_arlen),
      .m_rvalid(m_axi_table_rvalid),
      .m_rready(m_axi_table_rready),
      .m_rdata(m_axi_table_rdata),
      .m_rlast(m_axi_table_rlast),
      .m_rresp(m_axi_table_rresp),
      .out_valid(table_valid),
      .out_ready(table_ready),
      .out_data(table_data),
      .bus_error(table_error),
      .idle(table_idle)
  );

  word_unpacker unpacker (
      .clk(ap_clk),
      .rst_n(ap_rst_n),
      .start(go),
      .num_words(num_entries),
      .in_valid(table_valid),
      .in_ready(table_ready),
      .in_data(table_data),
      .out_valid(word_valid),
      .out_ready(word_ready),
      .out_word(word)
  );

  wire located, take, bad;
  wire [63:0] slice_address;
  wire [31:0] page;

  page_locator locator (
      .clk(ap_clk),
      .rst_n(ap_rst_n),
      .base(slice_base),
      .num_pages,
      .stride_beats(page_stride_beats[24:0]),
      .in_valid(word_valid),
      .in_ready(word_ready),
      .in_page(word),
      .out_valid(located),
      .out_ready(take),
      .out_address(slice_address),
      .out_page(page),
      .out_bad(bad)
  );

  // ---- Slices -> beats ----

  wire kv_ready_for_run, kv_valid, kv_ready, kv_error, kv_idle;
  wire [511:0] kv_data;
  wire skip = bad || bad_seen;
  assign take = skip || kv_ready_for_run;
  wire bad_item = located && take && bad;

  axi_reader kv_port (
      .clk(ap_clk),
      .rst_n(ap_rst_n),
      .burst_limit,
      .outstanding_limit,
      .abort(1'b0),
      .run_valid(located && !skip),
      .run_ready(kv_ready_for_run),
      .run_address(slice_address),
      .run_beats(slice_beats[24:0]),
      .m_arvalid(m_axi_kv_arvalid),
      .m_arready(m_axi_kv_arready),
      .m_araddr(m_axi_kv_araddr),
      .m_arlen(m_axi_kv_arlen),
      .m_rvalid(m_axi_kv_rvalid),
      .m_rready(m_axi_kv_rready),
      .m_rdata(m_axi_kv_rdata),
      .m_rlast(m_axi_kv_rlast),
      .m_rresp(m_axi_kv_rresp),
      .out_valid(kv_valid),
      .out_ready(kv_ready),
      .out_data(kv_data),
      .bus_error(kv_error),
      .idle(kv_idle)
  );

  assign m_axi_table_arsize = 3'd6;
  assign m_axi_table_arburst = 2'd1;
  assign m_axi_kv_arsize = 3'd6;
  assign m_axi_kv_arburst = 2'd1;

  // ---- Stream ----

  wire closing = state == CLOSE;
  wire slice_end = slice_sent + 25'd1 == slice_beats[24:0];
  wire last = slice_end && entries_sent + 32'd1 == num_entries;
  wire move = kv_valid && m_axis_kv_tready;
  assign kv_ready = m_axis_kv_tready && !closing;
  assign m_axis_kv_tvalid = kv_valid || closing;
  assign m_axis_kv_tdata = kv_data;
  assign m_axis_kv_tkeep = closing ? 64'd0 : '1;
  assign m_axis_kv_tlast = closing || last;
  assign last_move = move && last;

  // ---- Launches ----

  // The last index is checked before what was read in front of it is out.
  wire all_checked = entries_checked == num_entries;

  always_ff @(posedge ap_clk) begin
    if (!ap_rst_n) state <= IDLE;
    else begin
      case (state)
        IDLE: if (start) state <= CHECK;
        CHECK: state <= go ? RUN : CLOSE;
        RUN: begin
          if (last_move) state <= IDLE;
          else if (bad_seen && all_checked && kv_idle) state <= CLOSE;
        end
        default: if (m_axis_kv_tready) state <= IDLE;
      endcase
    end
    if (state == CHECK) begin
      bad_seen <= 1'b0;
      entries_checked <= 32'd0;
      entries_sent <= 32'd0;
      slice_sent <= 25'd0;
      slice_base <= pool + {26'd0, slice_beat, 6'd0};
    end else begin
      if (bad_item) bad_seen <= 1'b1;
      if (located && take) entries_checked <= entries_checked + 32'd1;
      if (move) slice_sent <= slice_end ? 25'd0 : slice_sent + 25'd1;
      if (move && slice_end) entries_sent <= entries_sent + 32'd1;
    end
  end

  wire launch_bad = state == CHECK && launch_code != 4'd0;
  wire bus_error = table_error || kv_error;

  job_status job (
      .clk(ap_clk),
      .rst_n(ap_rst_n),
      .clear(clear_status),
      .launch(start),
      .running(state != IDLE),
      .error(launch_bad || bus_error || bad_item),
      .code(launch_bad ? launch_code : bus_error ? BUS : PAGE_INDEX),
      .item(launch_bad ? 32'd0 : bus_error ? entries_sent : entries_checked),
      .detail(launch_bad ? launch_detail : bus_error ? 64'd0 : {32'd0, page}),
      .bad_item,
      .item_done(move && slice_end),
      .status,
      .stopped
  );

  wire unused = &{1'b0, table_ready_for_run, table_idle};
endmodule

`default_nettype wire
