// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// Beats -> the first `num_words` 32-bit words in them, lowest first. What the
// last beat holds behind them is dropped.

`default_nettype none

module word_unpacker (
    input wire clk,
    input wire rst_n,
    input wire start,  // takes num_words; the words before are all gone
    input wire [31:0] num_words,
    input wire in_valid,
    output wire in_ready,
    input wire [511:0] in_data,
    output wire out_valid,
    input wire out_ready,
    output wire [31:0] out_word
);
  logic [511:0] words;
  logic [4:0] held;
  logic [31:0] left;  // words that have not gone out

  wire take = out_valid && out_ready;
  assign out_valid = held != 5'd0 && left != 32'd0;
  assign out_word = words[31:0];
  assign in_ready = left != 32'd0 && (held == 5'd0 || (held == 5'd1 && take));

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      held <= 5'd0;
      left <= 32'd0;
    end else if (start) begin
      held <= 5'd0;
      left <= num_words;
    end else begin
      if (take) left <= left - 32'd1;
      if (in_valid && in_ready && !(take && left == 32'd1)) held <= 5'd16;
      else if (take) held <= held - 5'd1;
    end
    if (in_valid && in_ready) words <= in_data;
    else if (take) words <= {32'd0, words[511:32]};
  end
endmodule

`default_nettype wire
