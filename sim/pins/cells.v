// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// What the RTL of a board instantiates of an ECP5, without delays. Source: FPGA-TN-02035 (DDR registers), FPGA-TN-02032
// (I/O registers), FPGA-TN-02201 (the clock of the flash). EHXPLLL is in the wrapper of each board: its clocks are ideal.

module DELAYG #(parameter DEL_MODE = "USER_DEFINED", parameter DEL_VALUE = 0) (input A, output Z);
    assign Z = A;
endmodule

// What comes out of it is right while the eye of what comes in, at the clock of the register behind it, is around the edge.
// The PHY's clock is 2 ns behind its data, and goes CLOCK_PS further to the register than data do.
module DELAYF #(parameter DEL_MODE = "USER_DEFINED", parameter DEL_VALUE = 0) (
    input A, LOADN, MOVE, DIRECTION, output Z, CFLAG
);
    localparam CLOCK_PS = 1000, SETUP_PS = 520, HOLD_PS = 520;
    reg [6:0] taps = DEL_VALUE;
    always @(negedge MOVE or negedge LOADN)
        if (!LOADN) taps <= DEL_VALUE;
        else if (DIRECTION ? taps != 0 : taps != 127) taps <= DIRECTION ? taps - 1 : taps + 1;
    wire signed [15:0] begin_ps = -2000 - CLOCK_PS + 25*$signed({9'b0, taps}) + $signed(liteprobe_sim.skew_ps);
    assign Z     = A ^ (~(begin_ps < -SETUP_PS && begin_ps + 4000 > HOLD_PS) & liteprobe_sim.noise);
    assign CFLAG = 0;
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
