// Images: whole ones, or the lower halves of given ones; each a PNG file, and all of them on one sheet.
#include "commands.h"
#include "generate/generate_job.h"
#include "lab/figures/completion_sheet.h"
#include "routing/core/error.h"
#include "routing/data/dataset.h"
#include "routing/data/images/png_image.h"
#include "routing/generation/image_tokens.h"
#include "shell/command_line.h"
#include "shell/interrupts.h"
#include "shell/output.h"
#include "train/training_display.h"

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <system_error>
#include <utility>

namespace routing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSheet = "sheet.png";
const std::string kPrefix = "sample-";
constexpr std::size_t kMostCompletions = 100;

ImageShape shape_of(const GenerateJob& job) {
  return {.height = job.config().model.image_height, .width = job.config().model.image_width};
}

// The first images of a part of the run's own data.
std::vector<Image> images_of_data(const GenerateJob& job, TrainingDisplay& display) {
  const GenerateArguments& arguments = job.arguments;
  require<ConfigError>(!job.config().data.path.empty(), job.path.string(),
                       ": names no data; give images with --image FILE");
  const Dataset data(job.config().data, {.notes = [&](const std::string& line) { display.say(line); }});
  fitted_to(job.config(), data.facts());
  const TokenView tokens = data.part(arguments.complete_split).tokens;
  const ImageShape shape = shape_of(job);
  const std::int64_t there = tokens.size() / shape.values();
  require<ConfigError>(arguments.num_samples <= there, "--num-samples is ", arguments.num_samples, ", but ",
                       arguments.complete_split, " of ", data.path().string(), " has ", there,
                       " images; ask for fewer");
  std::vector<Image> images;
  for (std::int64_t i = 0; i < arguments.num_samples; ++i) {
    Image image{.shape = shape, .values = std::vector<std::uint8_t>(static_cast<std::size_t>(shape.values()))};
    tokens.copy(i * shape.values(), std::span(image.values));
    images.push_back(std::move(image));
  }
  return images;
}

std::vector<Image> given_images(const GenerateJob& job, TrainingDisplay& display) {
  if (!job.arguments.complete_split.empty()) return images_of_data(job, display);
  std::vector<Image> images;
  for (const std::string& file : job.arguments.images) images.push_back(read_png_of_shape(file, shape_of(job)));
  return images;
}

bool is_ours(const std::string& name) {
  return name == kSheet || (name.starts_with(kPrefix) && name.ends_with(".png"));
}

std::string sample_name(std::size_t number) {
  std::ostringstream name;
  name << kPrefix << std::setw(3) << std::setfill('0') << number << ".png";
  return name.str();
}

fs::path chosen_folder(const GenerateJob& job) {
  if (!job.arguments.out.empty()) return job.arguments.out;
  std::error_code ignored;
  const fs::path run = job.arguments.run;
  return fs::exists(run / "config.toml", ignored) ? run / ("samples-" + std::to_string(job.arguments.sampling.seed))
                                                  : fs::path("samples");
}

// Found out before an hour of sampling, not after it.
void prepare_folder(const fs::path& folder, bool force) {
  std::error_code error;
  fs::create_directories(folder, error);
  require<FileError>(!error && fs::is_directory(folder), folder.string(),
                     ": the folder cannot be made: ", error ? error.message() : "something else is there",
                     "; choose an --out that can be written");
  require<ConfigError>(force || fs::is_empty(folder), folder.string(),
                       ": is not empty; choose another --out, or replace its images with --force");
}

void remove_old_images(const fs::path& folder) {
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (is_ours(entry.path().filename().string())) old.push_back(entry.path());
  }
  for (const fs::path& path : old) fs::remove(path);
}

class ImageWork {
 public:
  ImageWork(const GenerateJob& job, TrainingDisplay& display)
      : job_(job), display_(display), originals_(given_images(job, display)), folder_(chosen_folder(job)) {
    for (const Image& image : originals_) prompts_.push_back(upper_half_tokens(image));
    const bool completes_data = !job.arguments.complete_split.empty();
    each_ = originals_.empty() || completes_data ? 1 : static_cast<std::size_t>(job.arguments.num_samples);
    require<ConfigError>(originals_.empty() || each_ <= kMostCompletions, "--num-samples is ", each_, ", but ",
                         kMostCompletions, " completions of an image are the most that fit on a sheet; ask for fewer");
    if (prompts_.empty()) prompts_.resize(static_cast<std::size_t>(job.arguments.num_samples));
  }

  int run() {
    prepare_folder(folder_, job_.arguments.force);
    const std::unique_ptr<Decoder> decoder = job_.decoder(report_);
    const InterruptGuard interrupts;
    const std::size_t all = prompts_.size() * each_;
    const auto batch = static_cast<std::size_t>(job_.arguments.batch_size);
    tokens_ = static_cast<std::int64_t>(all) * (shape_of(job_).values() - prompt_length());
    for (std::size_t first = 0; first < all && !InterruptGuard::requested(); first += batch) {
      try {
        make(first, std::min(batch, all - first), *decoder);
      } catch (const Interrupted&) {
        if (first == 0) throw;
      }
    }
    display_.finish();
    if (made_.size() >= each_) {
      write_png(folder_ / kSheet, completion_sheet(originals_, made_, each_));
      if (!job_.arguments.json) write_now((folder_ / kSheet).string() + "\n");
    }
    job_.say_summary(report_, *decoder, prompt_length());
    return InterruptGuard::requested() ? kInterrupted : kDone;
  }

 private:
  std::int64_t prompt_length() const { return static_cast<std::int64_t>(prompts_.front().size()); }

  void make(std::size_t first, std::size_t count, Decoder& decoder) {
    // A prompt for every sample: a batch need not begin with the first sample of a prompt.
    std::vector<std::vector<std::int32_t>> prompts;
    for (std::size_t i = first; i < first + count; ++i) prompts.push_back(prompts_[i / each_]);
    GenerateOptions options = job_.options();
    options.max_new_tokens = shape_of(job_).values();
    options.samples_per_prompt = 1;
    options.first_sample = first;
    report_.begin_batch();
    std::vector<std::int64_t> lengths(count, prompt_length());
    const auto listener = [&](std::size_t place, const TokenDraw&, std::span<const float>) {
      report_.token(++lengths[place]);
      display_.progress("token", report_.tokens(), tokens_);
      return !InterruptGuard::requested();
    };
    const std::vector<Sample> samples = generate(decoder, prompts, options, listener);
    // Half an image is none.
    if (InterruptGuard::requested()) return;
    for (std::size_t i = 0; i < count; ++i) write(first + i, prompts[i], samples[i], decoder);
  }

  void write(std::size_t number, std::vector<std::int32_t> tokens, const Sample& sample, const Decoder& decoder) {
    if (made_.empty() && job_.arguments.force) remove_old_images(folder_);
    tokens.insert(tokens.end(), sample.tokens.begin(), sample.tokens.end());
    made_.push_back(image_from_tokens(tokens, shape_of(job_)));
    const fs::path file = folder_ / sample_name(number);
    write_png(file, made_.back());
    if (!job_.arguments.json) {
      write_now(file.string() + "\n");
      return;
    }
    double nats = 0.0;
    for (const double value : sample.log_probabilities) nats -= value;
    const double seconds = report_.seconds();
    nlohmann::ordered_json object{{"sample", number},
                                  {"file", file.string()},
                                  {"sheet", (folder_ / kSheet).string()},
                                  {"prompt_tokens", prompt_length()},
                                  {"new_tokens", sample.tokens.size()},
                                  {"nats", nats},
                                  {"tokens_per_second", static_cast<double>(sample.tokens.size()) / seconds},
                                  {"seconds_to_first_token", report_.seconds_to_first_token()}};
    job_.add_facts(object, decoder);
    write_now(json_line(object));
  }

  const GenerateJob& job_;        // NOLINT(cppcoreguidelines-avoid-const-or-ref-data-members): lives for one call
  TrainingDisplay& display_;      // NOLINT(cppcoreguidelines-avoid-const-or-ref-data-members): the same
  std::vector<Image> originals_;  // to be completed
  fs::path folder_;
  std::vector<std::vector<std::int32_t>> prompts_;
  std::size_t each_ = 1;  // samples of a prompt
  GenerationReport report_;
  std::int64_t tokens_ = 0;  // of all samples
  std::vector<Image> made_;
};

}  // namespace

int generate_images(const GenerateJob& job) {
  refuse_given(job.arguments,
               {"-", "--prompt", "--prompt-file", "--prompt-ids", "--vocabulary", "--stop", "--ignore-end", "--echo",
                "--logprobs", "--beams", "--max-new-tokens"},
               "is for text, but " + job.path.string() + " holds a model of images");
  TrainingDisplay display(job.quiet);
  return ImageWork(job, display).run();
}

}  // namespace routing
