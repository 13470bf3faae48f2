#include "routing/config/text/other_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace routing {
namespace {

struct OtherNames {
  std::string_view key;
  std::string_view names;  // in small letters without dashes and underscores, each between spaces
};

// Of nanoGPT, Hugging Face, fairseq, Lightning and the public implementations of this model.
constexpr auto kOtherNames = std::to_array<OtherNames>({
    {"train.learning_rate", " lr learningrate maxlr baselr peaklr "},
    {"train.batch_size", " bs batch batchsize trainbatchsize perdevicetrainbatchsize minibatchsize "},
    {"train.sequence_length",
     " seqlen seqlength sequencelen sequencelength maxseqlen maxseqlength blocksize context contextlen contextlength "
     "contextsize maxlength nctx nseq bptt tokenspersample "},
    {"train.steps", " maxsteps maxiters iters iterations numsteps niters numtrainsteps maxupdates totalsteps "},
    {"train.warmup_steps", " warmup warmupiters numwarmupsteps warmupupdates "},
    {"train.weight_decay", " wd l2 "},
    {"train.clip", " gradclip clipgrad clipgradnorm maxgradnorm gradientclip gradientclipval clipnorm "},
    {"train.accumulation",
     " gradaccum gradaccumsteps gradientaccumulation gradientaccumulationsteps accumulategradbatches updatefreq "},
    {"train.optimizer", " optim opt optimiser "},
    {"train.schedule", " scheduler lrscheduler lrschedulertype lrschedule decaylr "},
    {"train.precision", " fp16 fp32 bf16 amp dtype mixedprecision half "},
    {"train.log_every", " loginterval loggingsteps logfreq "},
    {"train.eval_every", " evalinterval evalsteps evaluationsteps validateevery "},
    {"train.checkpoint_every", " savesteps saveevery saveinterval ckptevery ckptinterval checkpointinterval "},
    {"train.sample_every", " sampleinterval samplesteps samplefreq "},
    {"train.seed", " randomseed manualseed "},
    {"model.layers", " layers nlayer nlayers numlayers depth numhiddenlayers "},
    {"model.width", " width dim dmodel modeldim hiddensize hiddendim nembd embeddim embeddingdim "},
    {"model.head_dim", " dimhead headsize dhead "},
    {"model.feedforward_width", " dff dffn ffndim dimfeedforward intermediatesize ffnhiddensize ffdim "},
    {"model.checkpoint_activations", " gradientcheckpointing activationcheckpointing checkpointing "},
    {"attention.heads", " heads nhead nheads numheads numattentionheads "},
    {"routing.clusters", " numclusters nclusters kmeansclusters "},
    {"local.window", " windowsize localattnwindowsize localwindowsize attentionwindow "},
    {"data.tokens", " tokenizer tokeniser tokenization tokenizertype "},
    {"data.path", " dataset datadir datapath dataroot traindata trainfile inputfile "},
});

std::string plain(std::string_view name) {
  std::string text;
  for (const char letter : name.substr(name.rfind('.') == std::string_view::npos ? 0 : name.rfind('.') + 1)) {
    if (letter != '-' && letter != '_') text += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return text;
}

}  // namespace

std::string_view key_called(std::string_view name) {
  const std::string word = plain(name);
  if (word.empty()) return "";
  const auto* const found = std::find_if(kOtherNames.begin(), kOtherNames.end(), [&](const OtherNames& other) {
    return other.names.find(" " + word + " ") != std::string_view::npos;
  });
  return found == kOtherNames.end() ? std::string_view() : found->key;
}

}  // namespace routing
