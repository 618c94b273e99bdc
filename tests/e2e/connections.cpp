// Preloaded into every process of a command: writes down what it connects to and what it executes.
// A line is KIND TAB VALUE; what stays on this machine (loopback, Unix sockets) is left out.

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REAL(name) reinterpret_cast<decltype(&name)>(dlsym(RTLD_NEXT, #name))

static void note(const char* kind, const char* value) {
  const char* path = getenv("CONNECTIONS_LOG");
  if (!path || !value) return;
  char line[1024];
  int length = snprintf(line, sizeof line, "%s\t%s\n", kind, value);
  if (length >= static_cast<int>(sizeof line)) length = sizeof line - 1;
  int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  // One write is one line, whoever else writes.
  if (write(file, line, length) < 0) abort();
  close(file);
}

static void note_address(const char* kind, const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address && address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
    if (strncmp(text, "127.", 4) != 0 && strcmp(text, "0.0.0.0") != 0) note(kind, text);
  } else if (address && address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
    if (strcmp(text, "::1") != 0 && strcmp(text, "::") != 0 &&
        strncmp(text, "::ffff:127.", 11) != 0)
      note(kind, text);
  }
}

extern "C" {

int connect(int fd, const sockaddr* address, socklen_t length) {
  note_address("connect", address);
  return REAL(connect)(fd, address, length);
}

ssize_t sendto(int fd, const void* data, size_t size, int flags, const sockaddr* address,
               socklen_t length) {
  note_address("sendto", address);
  return REAL(sendto)(fd, data, size, flags, address, length);
}

int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                addrinfo** result) {
  char own[256] = "";
  gethostname(own, sizeof own - 1);
  in6_addr number;
  if (node && strcmp(node, "localhost") != 0 && strcmp(node, own) != 0 &&
      inet_pton(AF_INET, node, &number) != 1 && inet_pton(AF_INET6, node, &number) != 1)
    note("lookup", node);
  return REAL(getaddrinfo)(node, service, hints, result);
}

int execv(const char* path, char* const arguments[]) noexcept {
  note("execute", path);
  return REAL(execv)(path, arguments);
}

int execvp(const char* file, char* const arguments[]) noexcept {
  note("execute", file);
  return REAL(execvp)(file, arguments);
}

int execve(const char* path, char* const arguments[], char* const environment[]) noexcept {
  note("execute", path);
  return REAL(execve)(path, arguments, environment);
}

int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const arguments[],
                char* const environment[]) {
  note("execute", path);
  return REAL(posix_spawn)(pid, path, actions, attributes, arguments, environment);
}

}  // extern "C"
