// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "benchmarks/tool/serving/serve_request.h"
#include "benchmarks/tool/trace_line_parser.h"
#include "nlohmann/json.hpp"
#include "paged_kv/status_macros.h"

namespace paged_kv::tool {
namespace {

using nlohmann::json;

constexpr double kMaxArrival = 1e6;  // seconds; over eleven days
constexpr uint64_t kMaxRequestTokens = 1u << 20;

absl::Status Bad(const std::string& key, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat(QuoteForError(key), " is not ", wanted));
}

absl::Status ReadNumber(const std::string& key, const json& value, double min,
                        double max, double* number) {
  if (value.is_number()) *number = value.get<double>();
  if (value.is_number() && *number >= min && *number <= max) {
    return absl::OkStatus();
  }
  return Bad(key, absl::StrCat("a number from ", min, " to ", max));
}

template <typename T>
absl::Status ReadInteger(const std::string& key, const json& value,
                         uint64_t min, uint64_t max, T* number) {
  if (value.is_number_unsigned() && value.get<uint64_t>() >= min &&
      value.get<uint64_t>() <= max) {
    *number = static_cast<T>(value.get<uint64_t>());
    return absl::OkStatus();
  }
  return Bad(key, absl::StrCat("a whole number from ", min, " to ", max));
}

absl::Status ReadText(const std::string& key, const json& value,
                      std::string* text) {
  if (!value.is_string()) return Bad(key, "text");
  *text = value.get<std::string>();
  return absl::OkStatus();
}

absl::Status ReadFlag(const std::string& key, const json& value, bool* flag) {
  if (!value.is_boolean()) return Bad(key, "true or false");
  *flag = value.get<bool>();
  return absl::OkStatus();
}

absl::Status ReadTokens(const json& value, uint32_t vocab,
                        std::vector<TokenId>* tokens) {
  if (!value.is_array() || value.empty()) {
    return Bad("tokens", "an array of token ids");
  }
  for (const json& token : value) {
    if (!token.is_number_unsigned() || token.get<uint64_t>() >= vocab) {
      return Bad("tokens", absl::StrCat("of ids from 0 to ", vocab - 1));
    }
    tokens->push_back(token.get<TokenId>());
  }
  return absl::OkStatus();
}

// What the keys of one line say, before the prompt is tokenized.
struct Line {
  ServeRequest request;
  PromptOptions prompt;
  std::string text;
  bool has_text = false;
};

absl::Status ReadKey(const std::string& key, const json& value, uint32_t vocab,
                     Line* line) {
  ServeRequest& r = line->request;
  double number = 0;
  if (key == "prompt") {
    line->has_text = true;
    return ReadText(key, value, &line->text);
  }
  if (key == "tokens") return ReadTokens(value, vocab, &r.prompt.tokens);
  if (key == "chat") return ReadFlag(key, value, &line->prompt.chat);
  if (key == "system") return ReadText(key, value, &line->prompt.system);
  if (key == "ignore_end") return ReadFlag(key, value, &r.ignore_end);
  if (key == "arrival_s") {
    return ReadNumber(key, value, 0, kMaxArrival, &r.arrival_s);
  }
  if (key == "max_tokens") {
    return ReadInteger(key, value, 1, kMaxRequestTokens, &r.max_tokens);
  }
  if (key == "top_k") {
    return ReadInteger(key, value, 0, kMaxRequestTokens, &r.sampling.top_k);
  }
  if (key == "seed") {
    return ReadInteger(key, value, 0, UINT64_MAX, &r.sampling.seed);
  }
  if (key == "temperature" || key == "top_p") {
    PAGED_KV_RETURN_IF_ERROR(ReadNumber(key, value, 0, 1e6, &number));
    (key == "top_p" ? r.sampling.top_p : r.sampling.temperature) =
        static_cast<float>(number);
    return Validate(r.sampling);
  }
  if (key == "id") {
    if (value.is_number_integer()) {
      r.id = value.dump();
      return absl::OkStatus();
    }
    return ReadText(key, value, &r.id);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown key ", QuoteForError(key)));
}

absl::StatusOr<json> ParseObject(absl::string_view text) {
  const std::string quoted = QuoteForError(std::string(text));
  try {
    json object = json::parse(text.begin(), text.end());
    if (object.is_object()) return object;
    return absl::InvalidArgumentError(absl::StrCat("no JSON object: ", quoted));
  } catch (const json::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("not JSON at byte ", error.byte, ": ", quoted));
  } catch (const json::out_of_range&) {
    return absl::InvalidArgumentError(
        absl::StrCat("a number is out of range: ", quoted));
  }
}

absl::StatusOr<ServeRequest> ParseLine(absl::string_view text, uint64_t number,
                                       const LoadedModel& model,
                                       const ServeRequest& defaults) {
  PAGED_KV_ASSIGN_OR_RETURN(const json object, ParseObject(text));
  Line line;
  line.request = defaults;
  line.request.id = absl::StrCat(number);
  for (const auto& [key, value] : object.items()) {
    PAGED_KV_RETURN_IF_ERROR(ReadKey(key, value, model.config().vocab, &line));
  }
  const bool has_tokens = !line.request.prompt.tokens.empty();
  if (line.has_text == has_tokens) {
    return absl::InvalidArgumentError(
        "a request has either \"prompt\" or \"tokens\"");
  }
  if (line.has_text) {
    PAGED_KV_ASSIGN_OR_RETURN(line.request.prompt,
                              MakePrompt(model, line.text, line.prompt));
  }
  if (line.request.prompt.tokens.size() >= model.config().max_context) {
    return absl::InvalidArgumentError(
        absl::StrCat(line.request.prompt.tokens.size(),
                     " tokens leave no room in the model's context of ",
                     model.config().max_context));
  }
  return line.request;
}

// JSON that nests without end would nest the parser as deep.
bool NestsTooDeep(absl::string_view text) {
  constexpr int kDeepest = 8;
  int depth = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kDeepest) return true;
  }
  return false;
}

}  // namespace

ServeRequests ParseServeRequests(absl::string_view lines,
                                 const LoadedModel& model,
                                 const ServeRequest& defaults) {
  ServeRequests result;
  uint64_t number = 0;
  for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
    ++number;
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    if (NestsTooDeep(line)) {
      result.bad_lines.push_back({number, "JSON that nests too deep"});
      continue;
    }
    absl::StatusOr<ServeRequest> request =
        ParseLine(line, number, model, defaults);
    if (request.ok()) {
      result.requests.push_back(*std::move(request));
    } else {
      result.bad_lines.push_back(
          {number, std::string(request.status().message())});
    }
  }
  std::stable_sort(result.requests.begin(), result.requests.end(),
                   [](const ServeRequest& a, const ServeRequest& b) {
                     return a.arrival_s < b.arrival_s;
                   });
  return result;
}

}  // namespace paged_kv::tool
