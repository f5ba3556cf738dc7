// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies runs of beats between two pools of pages: from host memory to the card
// and back (a port linked to host[0]), between banks, or inside a pool for
// copy-on-write, where one item copies the K, or the V, of all slices. A packed
// slab is a pool with a single page.
//
// Arguments (words of control_registers.sv):
//   0x10  work                   address of items; a multiple of 64
//   0x18  source, 0x20 target    addresses; multiples of 4 KiB, below 2^48
//   0x28  num_items              1 .. 2^20
//   0x2C  max_items              items that the list holds
//   0x30  source_pages           page indices are below it
//   0x34  source_stride_beats    of a page, 1 .. 2^24; a beat is 64 bytes
//   0x38  target_pages
//   0x3C  target_stride_beats
//   0x40  burst_beats            longest burst, 1 .. 64; 0: 64
//   0x44  max_outstanding        bursts in flight, 1 .. 32; 0: 32
// Items: move_items.sv. Status: 0x80, see job_status.sv.
//
// The first bad item ends the launch: items before it are done, that one and
// those after it are not. No item may write what another of the launch reads
// or writes.

`default_nettype none

module kv_mover (
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
    // Items.
    output wire m_axi_work_arvalid,
    input wire m_axi_work_arready,
    output wire [63:0] m_axi_work_araddr,
    output wire [7:0] m_axi_work_arlen,
    output wire [2:0] m_axi_work_arsize,
    output wire [1:0] m_axi_work_arburst,
    input wire m_axi_work_rvalid,
    output wire m_axi_work_rready,
    input wire [511:0] m_axi_work_rdata,
    input wire m_axi_work_rlast,
    input wire [1:0] m_axi_work_rresp,
    // Source pages.
    output wire m_axi_source_arvalid,
    input wire m_axi_source_arready,
    output wire [63:0] m_axi_source_araddr,
    output wire [7:0] m_axi_source_arlen,
    output wire [2:0] m_axi_source_arsize,
    output wire [1:0] m_axi_source_arburst,
    input wire m_axi_source_rvalid,
    output wire m_axi_source_rready,
    input wire [511:0] m_axi_source_rdata,
    input wire m_axi_source_rlast,
    input wire [1:0] m_axi_source_rresp,
    // Target pages.
    output wire m_axi_target_awvalid,
    input wire m_axi_target_awready,
    output wire [63:0] m_axi_target_awaddr,
    output wire [7:0] m_axi_target_awlen,
    output wire [2:0] m_axi_target_awsize,
    output wire [1:0] m_axi_target_awburst,
    output wire m_axi_target_wvalid,
    input wire m_axi_target_wready,
    output wire [511:0] m_axi_target_wdata,
    output wire [63:0] m_axi_target_wstrb,
    output wire m_axi_target_wlast,
    input wire m_axi_target_bvalid,
    output wire m_axi_target_bready,
    input wire [1:0] m_axi_target_bresp
);
  localparam logic [3:0] BUS = 4'd14;
  localparam logic [1:0] IDLE = 2'd0, CHECK = 2'd1, RUN = 2'd2, STOP = 2'd3;

  logic [1:0] state;
  logic bad_seen;  // in this launch
  logic [31:0] items_left, items_taken;

  wire start, clear_status, stopped, tuning_bad;
  wire [351:0] arguments;
  wire [255:0] status;
  wire [63:0] work = arguments[63:0];
  wire [63:0] source = arguments[127:64];
  wire [63:0] target = arguments[191:128];
  wire [31:0] num_items = arguments[223:192];
  wire [31:0] max_items = arguments[255:224];
  wire [31:0] source_pages = arguments[287:256];
  wire [31:0] source_stride_beats = arguments[319:288];
  wire [31:0] target_pages = arguments[351:320];
  wire [31:0] target_stride_beats, burst_argument, outstanding_argument;
  wire [6:0] burst_limit;
  wire [5:0] outstanding_limit;
  wire [3:0] launch_code, item_code;
  wire [63:0] launch_detail, item_detail;

  wire items_idle, work_idle, source_idle, target_idle;
  wire all_idle = items_idle && work_idle && source_idle && target_idle;
  wire finished = state == RUN && (items_left == 32'd0 || bad_seen) && all_idle;
  wire go = state == CHECK && launch_code == 4'd0 && !stopped;
  wire refused = state == CHECK && !go;
  wire done = finished || refused;

  control_registers #(
      .ARGUMENTS(14)
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
      .arguments({outstanding_argument, burst_argument, target_stride_beats,
                  arguments}),
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

  mover_checks checks (
      .work,
      .source,
      .target,
      .num_items,
      .max_items,
      .source_stride_beats,
      .target_stride_beats,
      .tuning_bad,
      .code(launch_code),
      .detail(launch_detail)
  );

  // ---- The list ----

  wire work_free, work_valid, work_error, item_ready, item_done, item_error;
  wire [511:0] item;
  wire take = work_valid && item_ready && !bad_seen;

  axi_reader #(
      .LG_DEPTH(7)
  ) work_port (
      .clk(ap_clk),
      .rst_n(ap_rst_n),
      .burst_limit,
      .outstanding_limit,
      .abort(state == STOP),
      .run_valid(go),
      .run_ready(work_free),
      .run_address(work),
      .run_beats(num_items[24:0]),
      .m_arvalid(m_axi_work_arvalid),
      .m_arready(m_axi_work_arready),
      .m_araddr(m_axi_work_araddr),
      .m_arlen(m_axi_work_arlen),
      .m_rvalid(m_axi_work_rvalid),
      .m_rready(m_axi_work_rready),
      .m_rdata(m_axi_work_rdata),
      .m_rlast(m_axi_work_rlast),
      .m_rresp(m_axi_work_rresp),
      .out_valid(work_valid),
      .out_ready(item_ready || bad_seen),
      .out_data(item),
      .bus_error(work_error),
      .idle(work_idle)
  );

  // ---- Items -> runs ----

  wire read_valid, read_ready, write_valid, write_ready;
  wire [63:0] read_address, write_address;
  wire [24:0] run_beats;

  move_items items (
      .clk(ap_clk),
      .rst_n(ap_rst_n),
      .source,
      .source_pages,
      .source_stride_beats(source_stride_beats[24:0]),
      .target,
      .target_pages,
      .target_stride_beats(target_stride_beats[24:0]),
      .item_valid(take),
      .item_ready,
      .item(item[255:0]),
      .item_done,
      .error(item_error),
      .code(item_code),
      .detail(item_detail),
      .read_valid,
      .read_ready,
      .read_address,
      .write_valid,
      .write_ready,
      .write_address,
      .run_beats,
      .idle(items_idle)
  );

  // ---- Runs -> bursts ----

  wire data_valid, data_ready, source_error, target_error;
  wire [511:0] data;

  axi_reader source_port (
      .clk(ap_clk),
      .rst_n(ap_rst_n),
      .burst_limit,
      .outstanding_limit,
      .abort(1'b0),
      .run_valid(read_valid),
      .run_ready(read_ready),
      .run_address(read_address),
      .run_beats,
      .m_arvalid(m_axi_source_arvalid),
      .m_arready(m_axi_source_arready),
      .m_araddr(m_axi_source_araddr),
      .m_arlen(m_axi_source_arlen),
      .m_rvalid(m_axi_source_rvalid),
      .m_rready(m_axi_source_rready),
      .m_rdata(m_axi_source_rdata),
      .m_rlast(m_axi_source_rlast),
      .m_rresp(m_axi_source_rresp),
      .out_valid(data_valid),
      .out_ready(data_ready),
      .out_data(data),
      .bus_error(source_error),
      .idle(source_idle)
  );

  axi_writer target_port (
      .clk(ap_clk),
      .rst_n(ap_rst_n),
      .burst_limit,
      .outstanding_limit,
      .run_valid(write_valid),
      .run_ready(write_ready),
      .run_address(write_address),
      .run_beats,
      .in_valid(data_valid),
      .in_ready(data_ready),
      .in_data(data),
      .m_awvalid(m_axi_target_awvalid),
      .m_awready(m_axi_target_awready),
      .m_awaddr(m_axi_target_awaddr),
      .m_awlen(m_axi_target_awlen),
      .m_wvalid(m_axi_target_wvalid),
      .m_wready(m_axi_target_wready),
      .m_wdata(m_axi_target_wdata),
      .m_wstrb(m_axi_target_wstrb),
      .m_wlast(m_axi_target_wlast),
      .m_bvalid(m_axi_target_bvalid),
      .m_bready(m_axi_target_bready),
      .m_bresp(m_axi_target_bresp),
      .bus_error(target_error),
      .idle(target_idle)
  );

  assign m_axi_work_arsize = 3'd6;
  assign m_axi_work_arburst = 2'd1;
  assign m_axi_source_arsize = 3'd6;
  assign m_axi_source_arburst = 2'd1;
  assign m_axi_target_awsize = 3'd6;
  assign m_axi_target_awburst = 2'd1;

  // ---- Launches ----

  always_ff @(posedge ap_clk) begin
    if (!ap_rst_n) state <= IDLE;
    else begin
      case (state)
        IDLE: if (start) state <= CHECK;
        CHECK: state <= go ? RUN : IDLE;
        RUN: begin
          if (item_error) state <= STOP;
          else if (finished) state <= IDLE;
        end
        default: state <= RUN;
      endcase
    end
    if (state == CHECK) begin
      bad_seen <= 1'b0;
      items_left <= num_items;
      items_taken <= 32'd0;
    end else begin
      if (item_error) bad_seen <= 1'b1;
      if (item_done) begin
        items_left <= items_left - 32'd1;
        items_taken <= items_taken + 32'd1;
      end
    end
  end

  wire launch_bad = state == CHECK && launch_code != 4'd0;
  wire bus_error = work_error || source_error || target_error;

  job_status job (
      .clk(ap_clk),
      .rst_n(ap_rst_n),
      .clear(clear_status),
      .launch(start),
      .running(state != IDLE),
      .error(launch_bad || bus_error || item_error),
      .code(launch_bad ? launch_code : bus_error ? BUS : item_code),
      .item(launch_bad ? 32'd0 : items_taken),
      .detail(launch_bad ? launch_detail : bus_error ? 64'd0 : item_detail),
      .bad_item(item_error),
      .item_done,
      .status,
      .stopped
  );

  wire unused = &{1'b0, work_free, item[511:256]};
endmodule

`default_nettype wire
