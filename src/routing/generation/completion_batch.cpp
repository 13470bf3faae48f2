#include "routing/generation/completion_batch.h"

#include "routing/core/error.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

namespace routing {
namespace {

std::int64_t length_of(const std::vector<std::int32_t>& tokens) {
  return static_cast<std::int64_t>(tokens.size());
}

std::string words_of_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& torch_error) {
    return torch_error.what_without_backtrace();
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an error without words";
  }
}

SampleOptions sample_options(const CompletionRequest& request) {
  return {.sampling = request.sampling,
          .max_new_tokens = request.max_new_tokens,
          .end_token = request.end_token,
          .known_tokens = request.known_tokens};
}

std::int64_t shared_length(const std::vector<std::int32_t>& one, const std::vector<std::int32_t>& other) {
  return std::mismatch(one.begin(), one.end(), other.begin(), other.end()).first - one.begin();
}

}  // namespace

// What the samples of all requests say in a step.
class CompletionBatch::Heard : public SampleListener {
 public:
  explicit Heard(CompletionBatch& batch) : batch_(&batch) {}

  bool drawn(const SampleName& name, const TokenDraw& draw, std::span<const float> logits) override {
    ++batch_->counts_.tokens_drawn;
    bool goes_on = false;
    batch_->tell(name.request, batch_->find(name.request)->listener,
                 [&](CompletionListener& listener) { goes_on = listener.token(name.sample, draw, logits); });
    return goes_on;
  }
  void ended(const SampleName& name, StopReason reason) override {
    const std::shared_ptr<Request> request = batch_->find(name.request);
    --batch_->places_;
    if (--request->unended == 0) {
      ++batch_->counts_.finished;
      batch_->forget(name.request);
    }
    batch_->tell(name.request, request->listener,
                 [&](CompletionListener& listener) { listener.ended(name.sample, reason); });
  }
  void failed(const SampleName& name, std::exception_ptr error) override {
    batch_->fail(name.request, words_of_error(error));
  }

 private:
  CompletionBatch* batch_;
};

CompletionBatch::CompletionBatch(Decoder& decoder, const BatchLimits& limits)
    : decoder_(&decoder), limits_(limits), prefixes_(decoder, limits.prefix_cache), samples_(decoder) {
  require<ConfigError>(limits.sequences >= 1 && limits.prefill_block >= 1, "completions: sequences is ",
                       limits.sequences, " and prefill_block ", limits.prefill_block, ", but both must be at least 1");
}

CompletionBatch::~CompletionBatch() {
  for (const auto& [number, request] : requests_) {
    if (request->sequence >= 0) decoder_->drop(request->sequence);
  }
}

std::uint64_t CompletionBatch::add(CompletionRequest request, std::shared_ptr<CompletionListener> listener) {
  require<ConfigError>(request.samples >= 1, "generate: samples is ", request.samples, ", but must be at least 1");
  validate(sample_options(request));
  require<InputError>(listener != nullptr, "completions: a request without a listener; nobody would hear of it");
  require<InputError>(request.samples <= limits_.sequences, "samples is ", request.samples, ", but at most ",
                      limits_.sequences, " sequences are decoded at once; ask for fewer");
  decoder_->check_prompt(request.prompt);
  auto waiting = std::make_shared<Request>();
  waiting->left = most_new_tokens(*decoder_, length_of(request.prompt), request.max_new_tokens);
  waiting->unended = request.samples;
  waiting->asked = std::move(request);
  waiting->listener = std::move(listener);
  decoder_->has_room(expected_of(*waiting, 0));
  waiting_.push_back(next_);
  requests_.emplace(next_, std::move(waiting));
  ++counts_.requests;
  return next_++;
}

void CompletionBatch::cancel(std::uint64_t request) {
  if (find(request) == nullptr) return;
  ++counts_.cancelled;
  forget(request);
}

bool CompletionBatch::advance() {
  if (requests_.empty()) return false;
  ++counts_.rounds;
  budget_ = limits_.prefill_block;
  let_in();
  read_prompts();
  draw();
  if (const std::exception_ptr thrown = std::exchange(thrown_, nullptr)) std::rethrow_exception(thrown);
  return true;
}

CompletionBatch::Facts CompletionBatch::facts() const {
  Facts facts = counts_;
  facts.waiting = static_cast<std::int64_t>(waiting_.size());
  facts.reading = static_cast<std::int64_t>(reading_.size());
  facts.active = static_cast<std::int64_t>(samples_.size());
  facts.places = places_;
  facts.prefixes = prefixes_.facts();
  return facts;
}

std::shared_ptr<CompletionBatch::Request> CompletionBatch::find(std::uint64_t number) const {
  const auto found = requests_.find(number);
  return found == requests_.end() ? nullptr : found->second;
}

// Where so many tokens of its prompt are known.
Decoder::Expected CompletionBatch::expected_of(const Request& request, std::int64_t known) {
  return {.new_tokens = request.left * request.asked.samples,
          .forks = request.asked.samples - 1,
          .prompt_tokens = length_of(request.asked.prompt) - known};
}

bool CompletionBatch::has_room(const Request& request, const PrefixCache::Found& found) const {
  const Decoder::Expected expected = expected_of(request, found.tokens);
  return found.sequence < 0 ? decoder_->has_room(expected) : decoder_->has_room(found.sequence, expected);
}

// Those at the front, as long as there are places, memory and, where prompts cannot be read in pieces, time. Requests
// whose beginning another one is reading are left out, but not their places.
void CompletionBatch::let_in() {
  std::int64_t spoken_for = places_;
  for (std::size_t place = 0; place < waiting_.size() && budget_ > 0;) {
    const std::uint64_t number = waiting_[place];
    const std::shared_ptr<Request> request = find(number);
    if (spoken_for + request->asked.samples > limits_.sequences) return;
    PrefixCache::Found found = prefixes_.find(request->asked.prompt);
    if (follows_another(*request, found)) {
      spoken_for += request->asked.samples;
      ++place;
      continue;
    }
    bool fits = has_room(*request, found);
    while (!fits && prefixes_.evict()) {
      found = prefixes_.find(request->asked.prompt);
      fits = has_room(*request, found);
    }
    // Alone it is let in whatever happens: nobody's end would make more room.
    if (!fits && places_ > 0) return;
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(place));
    request->is_in = true;
    places_ += request->asked.samples;
    begin(number, *request, found);
    // A listener may have added and cancelled others.
    spoken_for = places_;
    place = 0;
  }
}

// Is somebody about to read what this request begins with? Then it is better to wait for a snapshot.
bool CompletionBatch::follows_another(Request& request, const PrefixCache::Found& found) {
  const auto is_before = [&](const Request& reader, std::int64_t length) { return reader.read < length; };
  if (const std::shared_ptr<Request> reader = find(request.follows); reader != nullptr && reader->sequence >= 0) {
    if (is_before(*reader, request.follows_to)) return true;
  }
  request.follows = 0;
  request.follows_to = found.tokens;
  for (const std::uint64_t number : reading_) {
    const std::shared_ptr<Request> reader = find(number);
    const std::int64_t shared = shared_length(reader->asked.prompt, request.asked.prompt);
    if (shared <= request.follows_to || !prefixes_.is_worth(shared) || !is_before(*reader, shared)) continue;
    request.follows = number;
    request.follows_to = shared;
  }
  if (request.follows == 0) return false;
  std::vector<std::int64_t>& places = find(request.follows)->places;
  const auto place = std::lower_bound(places.begin(), places.end(), request.follows_to);
  if (place == places.end() || *place != request.follows_to) places.insert(place, request.follows_to);
  return true;
}

void CompletionBatch::begin(std::uint64_t number, Request& request, const PrefixCache::Found& found) {
  const std::vector<std::int32_t>& prompt = request.asked.prompt;
  try {
    prefixes_.count(prompt, found);
    request.places = prefixes_.places(prompt);
    const Decoder::Expected expected = expected_of(request, found.tokens);
    if (found.sequence >= 0) {
      request.sequence = decoder_->fork(found.sequence, expected);
      request.read = request.cached_tokens = found.tokens;
      request.logits = found.logits;
    } else if (decoder_->prompt_block() > 0) {
      request.sequence = decoder_->open(expected);
    } else {
      Decoder::Begun begun = decoder_->begin(prompt, expected_of(request, length_of(prompt)));
      request.sequence = begun.sequence;
      request.logits = std::make_shared<const std::vector<float>>(std::move(begun.logits));
    }
  } catch (...) {
    fail(number, words_of_error(std::current_exception()));
    return;
  }
  const bool is_new = found.sequence < 0;
  if (request.logits == nullptr || (!is_new && request.read < length_of(prompt))) {
    reading_.push_back(number);
  } else {
    prompt_was_read(number, request, is_new ? length_of(prompt) : 0);
  }
}

// In turns: who has read comes last.
void CompletionBatch::read_prompts() {
  while (budget_ > 0 && !reading_.empty()) read_pieces();
}

// A piece of each prompt at once, as far as the budget goes, and none beyond the next snapshot.
void CompletionBatch::read_pieces() {
  std::vector<std::uint64_t> numbers;
  std::vector<Decoder::More> pieces;
  std::int64_t left = budget_;
  for (auto number = reading_.begin(); number != reading_.end() && left > 0; ++number) {
    const std::shared_ptr<Request> request = find(*number);
    request->logits = nullptr;
    const std::span<const std::int32_t> prompt = request->asked.prompt;
    const std::int64_t next = *std::upper_bound(request->places.begin(), request->places.end() - 1, request->read);
    const std::int64_t tokens = std::min(left, next - request->read);
    left -= std::max<std::int64_t>(1, tokens);
    numbers.push_back(*number);
    pieces.push_back(
        {request->sequence, prompt.subspan(static_cast<std::size_t>(request->read), static_cast<std::size_t>(tokens))});
  }
  std::vector<Decoder::Extended> read;
  try {
    read = decoder_->extend_each(pieces);
  } catch (...) {
    // Nobody knows how far they came.
    const std::string reason = words_of_error(std::current_exception());
    for (const std::uint64_t number : numbers) {
      if (find(number) == nullptr) continue;  // the listener of another has cancelled it
      std::erase(reading_, number);
      fail(number, reason);
    }
    return;
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::shared_ptr<Request> request = find(numbers[i]);
    if (request == nullptr) continue;  // the listener of another has cancelled it
    std::erase(reading_, numbers[i]);
    if (read[i].error) {
      fail(numbers[i], words_of_error(read[i].error));
      continue;
    }
    request->logits = std::make_shared<const std::vector<float>>(std::move(read[i].logits));
    prompt_was_read(numbers[i], *request, static_cast<std::int64_t>(pieces[i].tokens.size()));
    if (request->sequence >= 0) reading_.push_back(numbers[i]);
  }
}

// So many tokens more.
void CompletionBatch::prompt_was_read(std::uint64_t number, Request& request, std::int64_t tokens) {
  const std::vector<std::int32_t>& prompt = request.asked.prompt;
  request.read += tokens;
  budget_ -= std::max<std::int64_t>(1, tokens);
  counts_.prompt_tokens_read += tokens;
  try {
    if (std::binary_search(request.places.begin(), request.places.end(), request.read)) {
      prefixes_.insert(std::span(prompt).first(static_cast<std::size_t>(request.read)), request.sequence,
                       request.logits);
    }
    if (request.read == length_of(prompt)) begin_samples(number, request);
  } catch (...) {
    fail(number, words_of_error(std::current_exception()));
    return;
  }
  tell(number, request.listener, [&](CompletionListener& listener) {
    listener.prompt_read({.tokens = length_of(prompt), .read = request.read, .cached_tokens = request.cached_tokens});
  });
}

void CompletionBatch::begin_samples(std::uint64_t number, Request& request) {
  const std::int64_t sequence = std::exchange(request.sequence, -1);
  for (std::size_t sample = 0; sample < static_cast<std::size_t>(request.asked.samples); ++sample) {
    samples_.add({.name = {.request = number, .sample = sample},
                  .stream = request.asked.first_sample + sample,
                  .sequence = sample == 0 ? sequence : decoder_->fork(sequence),
                  .prompt = request.asked.prompt,
                  .logits = request.logits},
                 sample_options(request.asked));
  }
  request.logits = nullptr;
}

void CompletionBatch::draw() {
  Heard heard(*this);
  try {
    samples_.step(heard);
  } catch (...) {
    // Whose fault it was shows when each is read by itself; it is told the reason then.
    samples_.read_again(heard);
    samples_.step(heard);
  }
}

void CompletionBatch::fail(std::uint64_t number, const std::string& reason) {
  const std::shared_ptr<Request> request = find(number);
  ++counts_.failed;
  forget(number);
  tell(number, request->listener, [&](CompletionListener& listener) { listener.failed(reason); });
}

void CompletionBatch::forget(std::uint64_t number) {
  const std::shared_ptr<Request> request = find(number);
  std::erase(waiting_, number);
  std::erase(reading_, number);
  if (request->sequence >= 0) decoder_->drop(std::exchange(request->sequence, -1));
  samples_.remove(number);
  if (request->is_in) places_ -= request->unended;
  requests_.erase(number);
}

// A listener that throws has heard its last.
template <class Call>
void CompletionBatch::tell(std::uint64_t number, const std::shared_ptr<CompletionListener>& listener,
                           const Call& call) {
  try {
    call(*listener);
  } catch (...) {
    if (thrown_ == nullptr) thrown_ = std::current_exception();
    cancel(number);
  }
}

}  // namespace routing
