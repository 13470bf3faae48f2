// Bodies of requests: what is read, and how what is wrong is told.
#include "serve/request/api_fields.h"

#include "serve/request/api_error.h"
#include "serve/request/completion_fields.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace routing::api_fields_test {
namespace {

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400) << error.what();
    return error.param() + "|" + error.what();
  }
  return "nothing was refused";
}

std::string refusal_of_body(const std::string& body) {
  return refusal([&] { const ApiFields fields(body); });
}

std::string refusal_of_completion(const std::string& body) {
  return refusal([&] {
    ApiFields fields(body);
    completion_fields(fields, {.max_tokens = 100, .choices = 8});
  });
}

CompletionFields completion(const std::string& body) {
  ApiFields fields(body);
  return completion_fields(fields, {.max_tokens = 100, .choices = 8});
}

TEST(ApiFields, BodyMustBeOneObjectOfJson) {
  EXPECT_EQ(refusal_of_body(""), "|the body is empty, but must be a JSON object, at least {}");
  EXPECT_EQ(refusal_of_body("[1]"), "|the body is [1], but must be a JSON object");
  EXPECT_EQ(refusal_of_body(R"({"a": 1, "a": 2})"), "|the field 'a' stands twice in the body; give it once");
  EXPECT_NE(refusal_of_body(R"({"a": )").find("|the body is not JSON: parse error at line 1"), std::string::npos);
  EXPECT_NE(refusal_of_body("{\"a\": \"\xff\"}").find("|the body is not JSON"), std::string::npos);
  EXPECT_NE(refusal_of_body("{} {}").find("|the body is not JSON"), std::string::npos);
  EXPECT_NE(refusal_of_body(std::string(100000, '[')).find("nested deeper"), std::string::npos);
  EXPECT_NE(refusal_of_body(R"({"a":)" + std::string(100000, '[')).find("nested deeper"), std::string::npos);
}

TEST(ApiFields, ValuesOfAnotherTypeAreNamedWithTheirField) {
  ApiFields fields(R"({"t": 5, "f": 1, "w": 2.5, "b": 99, "m": -1, "n": "x", "i": [1, -2], "s": ["a", 3]})");
  EXPECT_EQ(refusal([&] { fields.text("t", ""); }), "t|t is 5, but must be a text");
  EXPECT_EQ(refusal([&] { fields.flag("f", false); }), "f|f is 1, but must be true or false");
  EXPECT_EQ(refusal([&] { fields.whole("w", 1, {.least = 0, .most = 9}); }),
            "w|w is 2.5, but must be a whole number, 0 to 9");
  EXPECT_EQ(refusal([&] { fields.whole("b", 1, {.least = 0, .most = 9}); }),
            "b|b is 99, but must be a whole number, 0 to 9");
  EXPECT_EQ(refusal([&] { fields.whole("m", 1, {.least = 0, .most = 9}); }),
            "m|m is -1, but must be a whole number, 0 to 9");
  EXPECT_EQ(refusal([&] { fields.number("n", 1); }), "n|n is \"x\", but must be a number");
  EXPECT_EQ(refusal([&] { fields.ids("i"); }), "i[1]|i[1] is -2, but must be an id, 0 or more");
  EXPECT_EQ(refusal([&] { fields.texts("s", 4); }), "s|s is [\"a\",3], but must be a text or a list of at most 4");
}

TEST(ApiFields, AbsentAndNullMeanTheDefault) {
  ApiFields fields(R"({"a": null})");
  EXPECT_EQ(fields.text("a", "x"), "x");
  EXPECT_EQ(fields.text("b", "y"), "y");
  EXPECT_EQ(fields.whole("c", 7, {}), 7);
  EXPECT_EQ(fields.maybe_whole("d", {}), std::nullopt);
  EXPECT_FALSE(fields.has("a"));
  EXPECT_TRUE(fields.texts("e", 1).empty());
  fields.refuse_others();
}

TEST(ApiFields, FieldsThatNobodyAskedForAreRefusedWithTheNearest) {
  EXPECT_EQ(refusal_of_completion(R"({"max_token": 5})"),
            "max_token|there is no field 'max_token'; did you mean 'max_tokens'?");
  EXPECT_EQ(refusal_of_completion(R"({"zzzzz": 5})"), "zzzzz|there is no field 'zzzzz'; docs/server.md lists them");
}

TEST(CompletionFields, DefaultsAreThoseOfTheProgramAndSeedsAreDrawn) {
  const CompletionFields one = completion("{}");
  EXPECT_EQ(one.sampling.top_p, SamplingOptions().top_p);
  EXPECT_EQ(one.sampling.temperature, 1.0);
  EXPECT_EQ(one.max_tokens, 256);
  EXPECT_EQ(one.choices, 1);
  EXPECT_FALSE(one.logprobs);
  ASSERT_EQ(one.prompts.size(), 1U);
  EXPECT_EQ(std::get<std::string>(one.prompts.front()), "");
  EXPECT_NE(one.sampling.seed, completion("{}").sampling.seed);
  EXPECT_EQ(completion(R"({"seed": 5})").sampling.seed, 5U);
}

TEST(CompletionFields, PromptsComeInFourForms) {
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(std::get<std::string>(completion(R"({"prompt": "a"})").prompts.at(0)), "a");
  EXPECT_EQ(std::get<std::string>(completion(R"({"prompt": ["a", "b"]})").prompts.at(1)), "b");
  EXPECT_EQ(std::get<Ids>(completion(R"({"prompt": [3, 4]})").prompts.at(0)), (Ids{3, 4}));
  EXPECT_EQ(std::get<Ids>(completion(R"({"prompt": [[3], [4, 5]]})").prompts.at(1)), (Ids{4, 5}));
  for (const char* wrong : {R"({"prompt": []})", R"({"prompt": 5})", R"({"prompt": {"a": 1}})"}) {
    EXPECT_NE(refusal_of_completion(wrong).find("prompt|prompt must be"), std::string::npos) << wrong;
  }
  EXPECT_NE(refusal_of_completion(R"({"prompt": [["a"]]})").find("prompt[0][0] is \"a\""), std::string::npos);
}

TEST(CompletionFields, WhatOtherServersHaveIsTakenOnlyWithoutMeaning) {
  completion(R"({"best_of": 2, "n": 2, "presence_penalty": 0, "frequency_penalty": 0.0, "logit_bias": {}, "user": "me",
                 "suffix": null, "stop": null})");
  EXPECT_NE(refusal_of_completion(R"({"best_of": 3})").find("best_of is 3, but must be 1"), std::string::npos);
  EXPECT_NE(refusal_of_completion(R"({"presence_penalty": 0.5})").find("presence_penalty is 0.5"), std::string::npos);
  EXPECT_NE(refusal_of_completion(R"({"suffix": "x"})").find("suffix is \"x\""), std::string::npos);
}

TEST(CompletionFields, NumbersOutOfRangeAreRefused) {
  EXPECT_NE(refusal_of_completion(R"({"max_tokens": 0})").find("1 to 100"), std::string::npos);
  EXPECT_EQ(completion(R"({"max_tokens": 0, "echo": true})").max_tokens, 0);
  EXPECT_NE(refusal_of_completion(R"({"max_tokens": 101})").find("1 to 100"), std::string::npos);
  EXPECT_NE(refusal_of_completion(R"({"n": 9})").find("1 to 8"), std::string::npos);
  EXPECT_NE(refusal_of_completion(R"({"logprobs": 21})").find("0 to 20"), std::string::npos);
  EXPECT_NE(refusal_of_completion(R"({"stop": ""})").find("empty text"), std::string::npos);
  EXPECT_NE(refusal_of_completion(R"({"seed": 9007199254740992})").find("seed is"), std::string::npos);
  EXPECT_THROW(completion(R"({"top_p": 0})"), std::exception);
  EXPECT_NE(refusal_of_completion(R"({"stream_options": {"x": 1}})").find("stream_options"), std::string::npos);
  EXPECT_TRUE(completion(R"({"stream_options": {"include_usage": true}})").streams_usage);
}

TEST(ImageFields, ImageIsBase64AndRowsBelongToIt) {
  const auto refused = [](const std::string& body) {
    return refusal([&] {
      ApiFields fields(body);
      image_fields(fields, {});
    });
  };
  EXPECT_NE(refused(R"({"image": "?"})").find("image|image is no base64"), std::string::npos);
  EXPECT_NE(refused(R"({"rows": 3})").find("rows|rows is for an image"), std::string::npos);
  ApiFields fields(R"({"image": "Zm9v", "rows": 3, "n": 2})");
  const ImageFields image = image_fields(fields, {});
  EXPECT_EQ(image.png, "foo");
  EXPECT_EQ(image.rows, 3);
  EXPECT_EQ(image.choices, 2);
}

TEST(TextOrTokens, OneOfThemIsGiven) {
  const auto refused = [](const std::string& body) {
    return refusal([&] {
      ApiFields fields(body);
      text_or_tokens(fields);
    });
  };
  EXPECT_NE(refused("{}").find("neither text nor tokens"), std::string::npos);
  EXPECT_NE(refused(R"({"text": "a", "tokens": [1]})").find("both"), std::string::npos);
}

}  // namespace
}  // namespace routing::api_fields_test
