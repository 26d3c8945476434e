// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// What leaves the FPGA for a SDRAM: all pins are as late. For pins.v and eye.v.
`timescale 1ps/1ps

module memory_leaves(
    input integer late,
    input         sdram_clock,
    input  [2:0]  strobes,
    input  [10:0] a,
    input  [1:0]  ba,
    input  [31:0] dq,
    output reg        ck,
    output reg [2:0]  command,
    output reg [10:0] address,
    output reg [1:0]  bank,
    output reg [31:0] written
);
    initial ck = 0;
    always @(sdram_clock) ck <= #(late) sdram_clock;
    always @(strobes) command <= #(late) strobes;
    always @(a)  address <= #(late) a;
    always @(ba) bank    <= #(late) ba;
    always @(dq) written <= #(late) dq;
endmodule
