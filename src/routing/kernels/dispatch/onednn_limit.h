// Keeps oneDNN off tile registers that it would configure wrongly.
//
// oneDNN (seen in 2.6.3 and 3.7.2) asks the processor which palettes of tiles there are (CPUID leaf 0x1D) and loads the
// last one. Some virtual machines have tiles, hand them over, and leave that leaf out: oneDNN then loads palette 0,
// which is no tiles at all, and its first product of bfloat16 ends the process by SIGILL. Our own loops name palette 1
// and work.
#pragma once

namespace routing {

// Limits oneDNN to AVX-512 where the palettes are hidden, unless DNNL_MAX_CPU_ISA or ONEDNN_MAX_CPU_ISA is set. The
// limit holds for the whole process and has to come before anything else of oneDNN, so whoever touches oneDNN calls
// this first; later calls do nothing.
void limit_onednn();

// Whether products on tiles would end the process: the palettes are hidden, and oneDNN takes tiles nevertheless,
// because it was in use before limit_onednn(), or by the user's wish.
bool onednn_would_crash_on_tiles();

}  // namespace routing
