// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0
//
// The two tuning arguments of a launch: 0 means the largest, and so does what
// is above it; `bad` says that it was above.

`default_nettype none

module job_limits (
    input wire [31:0] burst_argument,
    input wire [31:0] outstanding_argument,
    output wire [6:0] burst_limit,        // 1 .. 64
    output wire [5:0] outstanding_limit,  // 1 .. 32
    output wire bad
);
  wire burst_bad = burst_argument > 32'd64;
  wire outstanding_bad = outstanding_argument > 32'd32;
  assign bad = burst_bad || outstanding_bad;
  assign burst_limit =
      burst_bad || burst_argument == 32'd0 ? 7'd64 : burst_argument[6:0];
  assign outstanding_limit =
      outstanding_bad || outstanding_argument == 32'd0 ? 6'd32 :
      outstanding_argument[5:0];
endmodule

`default_nettype wire
