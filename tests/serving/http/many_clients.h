// Clients in a process of their own: both ends of 10,000 connections would not fit into one process's limit of open
// files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace routing::http {

// So many connections to one port of loopback, all steps for all of them together, each step bounded by our patience.
class Crowd {
 public:
  // Descriptors of connected sockets; fewer if the limit of open files forbids more.
  static std::vector<int> connect(std::uint16_t port, std::size_t count);
  static bool send_to_all(const std::vector<int>& sockets, const std::string& bytes);
  // Waits until so many of them have received something that begins so; how many have.
  static std::size_t answered(const std::vector<int>& sockets, const std::string& beginning, std::size_t enough);
};

// A child process that does one thing after the other as it is told, and answers each with a number.
class Child {
 public:
  using Step = std::function<std::int64_t(std::int64_t argument)>;
  // Before the test starts threads.
  explicit Child(std::vector<Step> steps);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // What the step returned; nothing if the child ended or does not answer.
  std::optional<std::int64_t> run(std::size_t step, std::int64_t argument = 0);

 private:
  pid_t process_ = -1;
  int to_child_ = -1, from_child_ = -1;
};

// Puts the soft limit of open files back.
class DescriptorLimit {
 public:
  DescriptorLimit();
  ~DescriptorLimit();
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  void set_soft(std::size_t limit) const;
  std::size_t soft() const { return soft_; }
  std::size_t hard() const { return hard_; }

 private:
  std::size_t soft_ = 0, hard_ = 0;
};

}  // namespace routing::http
