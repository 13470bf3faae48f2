// `bench long`: one sequence over ranks in training, as measured and, on paper, over more machines and a given network.
#pragma once

namespace routing::bench {

// A step over N machines that share a sequence, each with a piece as long as the one that was measured.
//
//   rows(N)      2 F R / bandwidth                rows of earlier pieces come to the last machine, and the gradients of
//                                                 later ones to the first; R bytes of a piece. F is N - 1 where heads
//                                                 read all earlier keys, and 1 where they read the last ones of lists
//                                                 that a piece fills: what comes is as much then, however many machines
//                                                 there are
//   gradients(N) 2 B (N - 1) / N / bandwidth      of the weights, round a ring
//   step(N)      compute + rows(N) + gradients(N) + (N - 1) (layers + 2) latency; nothing is hidden
//   speed-up     N compute / step(N): as many more tokens per second as one machine with one piece
//
// Computing is taken to cost as much for every piece: true of attention over windows of lists, which a machine makes of
// its own tokens and what came.
struct LongModel {
  double compute_seconds = 0.0;
  double row_bytes = 0.0;  // of all heads of all layers of a piece, for the next one
  bool reads_all = false;  // heads read all earlier keys, so each piece sends as much to every later one
  double gradient_bytes = 0.0;
  int layers = 1;
  double bits_per_second = 10e9;
  double latency_seconds = 50e-6;
};
double network_seconds(const LongModel& model, int ranks);
double step_seconds(const LongModel& model, int ranks);
double speedup(const LongModel& model, int ranks);

// Of what rank 0 sent in a step to ranks that share its sequences, the rows of its piece for one other rank: without
// its part of the gradients, which go round a ring.
double row_bytes_for_one(double bytes_sent, double gradient_bytes, int ranks);

}  // namespace routing::bench
