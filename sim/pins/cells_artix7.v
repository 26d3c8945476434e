// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// What the RTL of a board instantiates of an Artix-7, without delays. Source: UG471 (IDDR, ODDR, IDELAYE2), UG470 (STARTUPE2),
// UG953 (the rest). PLLE2_ADV is in the wrapper of each board: its clocks are ideal.

// As DELAYF in cells.v, in steps of 78.125 ps. How much further the PHY's clock goes than data do, is taken from there: here
// it is Vivado's to tell.
module IDELAYE2 #(parameter IDELAY_TYPE = "FIXED", IDELAY_VALUE = 0, REFCLK_FREQUENCY = 200.0) (
    input C, LD, CE, INC, LDPIPEEN, REGRST, CINVCTRL, IDATAIN, input [4:0] CNTVALUEIN, output DATAOUT
);
    localparam CLOCK_PS = 1000, SETUP_PS = 520, HOLD_PS = 520;
    reg [4:0] taps = IDELAY_VALUE;
    always @(posedge C) if (LD) taps <= CNTVALUEIN;
    wire signed [15:0] delay_ps = (625*$signed({11'b0, taps})) >>> 3;
    wire signed [15:0] begin_ps = -2000 - CLOCK_PS + delay_ps + $signed(liteprobe_sim.skew_ps);
    assign DATAOUT = IDATAIN ^ (~(begin_ps < -SETUP_PS && begin_ps + 4000 > HOLD_PS) & liteprobe_sim.noise);
endmodule

module IDELAYCTRL (input REFCLK, RST, output RDY);
    assign RDY = ~RST;
endmodule

// SAME_EDGE_PIPELINED gives the sample of a rising edge and that of the falling one behind it together, at the next rising
// edge; SAME_EDGE that of a rising edge at once, with the falling one before it.
module IDDR #(parameter DDR_CLK_EDGE = "OPPOSITE_EDGE") (input C, CE, D, R, S, output Q1, Q2);
    reg rising = 0, falling = 0, earlier = 0, late_rising = 0;
    always @(negedge C) falling <= D;
    always @(posedge C) begin
        rising      <= D;
        earlier     <= falling;
        late_rising <= rising;
    end
    assign Q1 = DDR_CLK_EDGE == "SAME_EDGE_PIPELINED" ? late_rising : rising;
    assign Q2 = DDR_CLK_EDGE == "OPPOSITE_EDGE" ? falling : earlier;
endmodule

// SAME_EDGE: both are taken by the rising edge.
module ODDR #(parameter DDR_CLK_EDGE = "OPPOSITE_EDGE") (input C, CE, D1, D2, R, S, output Q);
    reg first = 0, second = 0;
    always @(posedge C) begin
        first  <= D1;
        second <= D2;
    end
    assign Q = C ? first : second;
endmodule

module BUFG (input I, output O);
    assign O = I;
endmodule

module OBUF (input I, output O);
    assign O = I;
endmodule

module IOBUF (inout IO, input I, T, output O);
    assign IO = T ? 1'bz : I;
    assign O  = IO;
endmodule

module FDPE #(parameter INIT = 1) (input C, CE, D, PRE, output reg Q = INIT);
    always @(posedge C or posedge PRE) if (PRE) Q <= 1; else if (CE) Q <= D;
endmodule

module FDCE #(parameter INIT = 0) (input C, CE, D, CLR, output reg Q = INIT);
    always @(posedge C or posedge CLR) if (CLR) Q <= 0; else if (CE) Q <= D;
endmodule

module STARTUPE2 (input CLK, GSR, GTS, KEYCLEARB, PACK, USRCCLKO, USRCCLKTS, USRDONEO, USRDONETS);
    always @* liteprobe_sim.flash_clk = USRCCLKO;
endmodule
