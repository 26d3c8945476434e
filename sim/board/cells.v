// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// What the RTL of a board instantiates of an ECP5, without delays. Source: FPGA-TN-02035 (DDR registers), FPGA-TN-02032
// (I/O registers), FPGA-TN-02201 (the clock of the flash). EHXPLLL is in the wrapper of each board: its clocks are ideal.

module DELAYG #(parameter DEL_MODE = "USER_DEFINED", parameter DEL_VALUE = 0) (input A, output Z);
    assign Z = A;
endmodule

// Samples of a rising edge and of the falling one behind it come out together, at the next rising edge.
module IDDRX1F #(parameter GSR = "ENABLED") (input D, SCLK, RST, output reg Q0 = 0, Q1 = 0);
    reg rising = 0, falling = 0;
    always @(negedge SCLK) falling <= D;
    always @(posedge SCLK) begin
        rising <= D;
        Q0     <= rising;
        Q1     <= falling;
    end
endmodule

module ODDRX1F #(parameter GSR = "ENABLED") (input D0, D1, SCLK, RST, output Q);
    reg first = 0, second = 0;
    always @(posedge SCLK) begin
        first  <= D0;
        second <= D1;
    end
    assign Q = SCLK ? first : second;
endmodule

module DCCA (input CLKI, CE, output CLKO);
    assign CLKO = CLKI;
endmodule

module FD1S3BX (input D, CK, PD, output reg Q = 1);
    always @(posedge CK or posedge PD) if (PD) Q <= 1; else Q <= D;
endmodule

module IFS1P3BX (input D, SP, SCLK, PD, output reg Q = 1);
    always @(posedge SCLK) if (PD) Q <= 1; else if (SP) Q <= D;
endmodule

module OFS1P3BX (input D, SP, SCLK, PD, output reg Q = 1);
    always @(posedge SCLK) if (PD) Q <= 1; else if (SP) Q <= D;
endmodule

module TRELLIS_IO #(parameter DIR = "INPUT") (inout B, input I, T, output O);
    assign B = T ? 1'bz : I;
    assign O = B;
endmodule

module USRMCLK (input USRMCLKI, USRMCLKTS);
    always @* liteprobe_sim.flash_clk = USRMCLKI;
endmodule
