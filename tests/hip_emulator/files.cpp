// Files of the emulator's own.
#include "emulator.h"
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

std::string temporary_folder()
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

std::string read_all(const std::string &path)
{
    std::string bytes;
    char piece[1 << 16];
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return bytes;
    for (ssize_t n; (n = read(file, piece, sizeof piece)) > 0;) bytes.append(piece, (size_t)n);
    close(file);
    return bytes;
}

bool write_new(const std::string &path, const std::string &bytes)
{
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return false;
    size_t done = 0;
    for (ssize_t n; done < bytes.size() && (n = write(file, bytes.data() + done, bytes.size() - done)) > 0;)
        done += (size_t)n;
    const int error = done == bytes.size() ? 0 : errno;
    if (close(file) == 0 && !error) return true;
    unlink(path.c_str());
    errno = error == EEXIST ? EIO : error;
    return false;
}

// Not mkstemp: the names of glibc 2.36 follow the nanoseconds of a clock, and the loader knows libraries by their
// names.
std::string fresh(const std::string &start, const std::function<bool(const std::string &)> &make)
{
    static std::atomic<uint64_t> number;
    for (;;) {
        const std::string path = start + "-" + std::to_string(getpid()) + "-" + std::to_string(++number);
        if (make(path)) return path;
        if (errno != EEXIST) return ""; // else one of a process that had this number before
    }
}
