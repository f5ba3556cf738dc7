// Copyright 2026 The PagedKV Authors
// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "benchmarks/tool/command.h"
#include "benchmarks/tool/file_io.h"
#include "benchmarks/tool/flags.h"
#include "benchmarks/tool/progress.h"
#include "benchmarks/tool/sha256.h"
#include "benchmarks/tool/stress_report.h"
#include "benchmarks/tool/stress_run.h"
#include "benchmarks/tool/table.h"
#include "paged_kv/status_macros.h"
#include "tests/support/lockstep_replay.h"

namespace paged_kv::tool {
namespace {

constexpr char kDetails[] =
    "Makes random calls, valid and invalid ones, on a manager and on a naive "
    "model of it, and compares every result, block and counter. Caches of "
    "many kinds take turns: block sizes, windows, layer groups, watermarks, "
    "events, colliding hashes.\n"
    "\n"
    "With several threads the calls go to the thread-safe front; the log of "
    "what took effect, in its order, must then agree with the model.\n"
    "\n"
    "A violation ends the run with exit code 1, saves the operation log that "
    "led to it and says how to see it again.\n"
    "\n"
    "Examples:\n"
    "  pagedkv stress\n"
    "  pagedkv stress --ops=20000000 --seed=1\n"
    "  pagedkv stress --threads=2\n"
    "  pagedkv stress --replay=stress.oplog";

class StressCommand : public Command {
 public:
  std::string name() const override { return "stress"; }
  std::string summary() const override {
    return "Random calls against a naive model";
  }

  void AddFlags(CLI::App& app) override {
    app.footer(kDetails);
    AddNumber(app, "--ops", &options_.operations, 1, uint64_t{1} << 40,
              "Operations");
    AddNumber(app, "--threads", &options_.threads, 1, 64,
              "Threads that make them");
    AddNumber(app, "--pool_blocks", &options_.pool_blocks, 1, 1u << 16,
              "Blocks per layer group");
    AddNumber(app, "--first_round", &options_.first_round, 0, uint64_t{1} << 40,
              "Leave out the rounds before this one");
    AddText(app, "--replay", &replay_path_, "LOG",
            "Apply this operation log to a manager and the model instead");
    AddText(app, "--log", &log_path_, "FILE",
            "Where a violation's operation log is saved")
        ->default_str("stress.oplog");
    // To see what follows from a violation without one. Not in the help.
    AddNumber(app, "--pretend_violation_at", &options_.pretend_violation_at, 0,
              uint64_t{1} << 40, "")
        ->group("");
    common_.AddTo(app);
  }

  absl::StatusOr<int> Run(ToolStreams& streams) override {
    if (!replay_path_.empty()) return Replay(streams);
    options_.seed = common_.seed;
    Progress progress(common_.ProgressStream(streams));
    const StressResult result = options_.threads > 1
                                    ? RunThreadedStress(options_, progress)
                                    : RunStress(options_, progress);
    std::string saved;
    if (!result.log.empty()) {
      // A log that cannot be saved must not hide what it is about.
      const absl::Status written = WriteFile(log_path_, result.log);
      if (written.ok()) {
        saved = log_path_;
      } else {
        streams.err << written.message() << "\n";
      }
    }
    if (common_.json) {
      streams.out << StressJson(options_, result, saved).dump(2) << "\n";
    } else {
      streams.out << StressText(options_, result, saved);
    }
    return result.violations == 0 ? kExitOk : kExitViolations;
  }

 private:
  absl::StatusOr<int> Replay(ToolStreams& streams) {
    PAGED_KV_ASSIGN_OR_RETURN(const std::string log, ReadFile(replay_path_));
    testing::LockstepOptions lockstep;
    lockstep.full_check_every = 1;
    const absl::StatusOr<testing::LockstepReplay> replay =
        testing::ReplayInLockstep(log, lockstep);
    // A file that is no log is bad input, not a broken cache.
    if (!replay.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(replay_path_, ": ", replay.status().message()));
    }
    const bool violated = !replay->violation.empty();
    if (common_.json) {
      nlohmann::ordered_json json = {{"schema_version", kJsonSchemaVersion},
                                     {"command", "stress"},
                                     {"replay", replay_path_},
                                     {"log_sha256", Sha256Hex(log)},
                                     {"operations", replay->operations},
                                     {"granted", replay->granted},
                                     {"fingerprint", replay->fingerprint},
                                     {"violations", violated ? 1 : 0}};
      if (violated) json["violation"] = {{"what", replay->violation}};
      streams.out << json.dump(2) << "\n";
    } else {
      if (violated) streams.out << "violation: " << replay->violation << "\n";
      streams.out << Grouped(replay->operations) << " operations of "
                  << replay_path_ << ", " << Grouped(replay->granted)
                  << " granted\nviolations: " << (violated ? 1 : 0) << "\n";
    }
    return violated ? kExitViolations : kExitOk;
  }

  CommonFlags common_;
  StressOptions options_;
  std::string replay_path_;
  std::string log_path_ = "stress.oplog";
};

}  // namespace

std::unique_ptr<Command> MakeStressCommand() {
  return std::make_unique<StressCommand>();
}

}  // namespace paged_kv::tool
