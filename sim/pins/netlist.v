// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// What a netlist instantiates of an ECP5 beside the cells of a board's RTL, without delays. Source: FPGA-TN-02204 (memories),
// FPGA-TN-02205 (multipliers); the layout of INIT is that of Yosys (techlibs/lattice/brams_map_16kd.v).

module TRELLIS_DPR16X4 #(parameter [63:0] INITVAL = 0) (input [3:0] DI, WAD, RAD, input WRE, WCK, output [3:0] DO);
    reg [3:0] words[0:15];
    integer n;
    initial for (n = 0; n < 16; n = n + 1) words[n] = {INITVAL[n + 48], INITVAL[n + 32], INITVAL[n + 16], INITVAL[n]};
    always @(posedge WCK) if (WRE) words[WAD] <= DI;
    assign DO = words[RAD];
endmodule

module MULT18X18D (input [17:0] A, B, input SIGNEDA, output [35:0] P);
    assign P = SIGNEDA ? $signed(A)*$signed(B) : A*B;
endmodule

// 2048 bytes of nine bits. A port of 18 bits sees two of them, one of 4, 2 or 1 bits a part of one. Of 36 bits port A writes, and
// port B reads, over the pins of both.
module DP16KD #(
    parameter WIDTH_A = 18, WIDTH_B = 18, REGISTERED_A = 0, REGISTERED_B = 0, BEFORE_A = 0, BEFORE_B = 0, THROUGH_A = 0,
    THROUGH_B = 0, parameter [20479:0] INIT = 0
) (
    input [13:0] ADA, ADB, input [17:0] DIA, DIB, output [17:0] DOA, DOB,
    input CLKA, CLKB, CEA, CEB, WEA, WEB, OCEA, OCEB, RSTA, RSTB, CSA, CSB
);
    reg [8:0] bytes[0:2047];
    integer n;
    initial for (n = 0; n < 2048; n = n + 1) bytes[n] = INIT[20*(n/2) + 9*(n%2) +: 9];

    reg [17:0] a = 0, b = 0, a_d = 0, b_d = 0, high = 0;
    wire [35:0] word = {DIB, DIA};
    wire [17:0] now_a, now_b;
    assign now_a = WIDTH_A == 18 ? {bytes[{ADA[13:4], 1'b1}], bytes[{ADA[13:4], 1'b0}]} :
                   WIDTH_A == 9  ? {9'b0, bytes[ADA[13:3]]} :
                   WIDTH_A == 4  ? {14'b0, ADA[2] ? bytes[ADA[13:3]][7:4] : bytes[ADA[13:3]][3:0]} :
                   WIDTH_A == 2  ? {16'b0, bytes[ADA[13:3]][2*ADA[2:1] +: 2]} : {17'b0, bytes[ADA[13:3]][ADA[2:0]]};
    assign now_b = WIDTH_B == 18 ? {bytes[{ADB[13:4], 1'b1}], bytes[{ADB[13:4], 1'b0}]} :
                   WIDTH_B == 9  ? {9'b0, bytes[ADB[13:3]]} :
                   WIDTH_B == 4  ? {14'b0, ADB[2] ? bytes[ADB[13:3]][7:4] : bytes[ADB[13:3]][3:0]} :
                   WIDTH_B == 2  ? {16'b0, bytes[ADB[13:3]][2*ADB[2:1] +: 2]} : {17'b0, bytes[ADB[13:3]][ADB[2:0]]};
    always @(posedge CLKA) begin
        if (CEA & CSA) begin
            if (WEA) begin
                case (WIDTH_A)
                    36: for (n = 0; n < 4; n = n + 1) if (ADA[n]) bytes[{ADA[13:5], n[1:0]}] <= word[9*n +: 9];
                    18: begin
                        if (ADA[0]) bytes[{ADA[13:4], 1'b0}] <= DIA[8:0];
                        if (ADA[1]) bytes[{ADA[13:4], 1'b1}] <= DIA[17:9];
                    end
                    9: bytes[ADA[13:3]] <= DIA[8:0];
                    4: if (ADA[2]) bytes[ADA[13:3]][7:4] <= DIA[3:0]; else bytes[ADA[13:3]][3:0] <= DIA[3:0];
                    2: bytes[ADA[13:3]][2*ADA[2:1] +: 2] <= DIA[1:0];
                    default: bytes[ADA[13:3]][ADA[2:0]] <= DIA[0];
                endcase
                if (BEFORE_A) a <= now_a;
                if (THROUGH_A) a <= DIA;
            end else a <= now_a;
        end
        if (RSTA) a <= 0;
        if (OCEA) a_d <= a;
    end
    always @(posedge CLKB) begin
        if (CEB & CSB) begin
            if (WEB) begin
                case (WIDTH_B)
                    18: begin
                        if (ADB[0]) bytes[{ADB[13:4], 1'b0}] <= DIB[8:0];
                        if (ADB[1]) bytes[{ADB[13:4], 1'b1}] <= DIB[17:9];
                    end
                    9: bytes[ADB[13:3]] <= DIB[8:0];
                    4: if (ADB[2]) bytes[ADB[13:3]][7:4] <= DIB[3:0]; else bytes[ADB[13:3]][3:0] <= DIB[3:0];
                    2: bytes[ADB[13:3]][2*ADB[2:1] +: 2] <= DIB[1:0];
                    default: bytes[ADB[13:3]][ADB[2:0]] <= DIB[0];
                endcase
                if (BEFORE_B) b <= now_b;
                if (THROUGH_B) b <= DIB;
            end else begin
                b    <= WIDTH_B == 36 ? {bytes[{ADB[13:5], 2'd1}], bytes[{ADB[13:5], 2'd0}]} : now_b;
                high <= {bytes[{ADB[13:5], 2'd3}], bytes[{ADB[13:5], 2'd2}]};
            end
        end
        if (RSTB) {high, b} <= 0;
        if (OCEB) b_d <= b;
    end
    assign DOA = WIDTH_B == 36 ? b : REGISTERED_A ? a_d : a;
    assign DOB = WIDTH_B == 36 ? high : REGISTERED_B ? b_d : b;
endmodule
