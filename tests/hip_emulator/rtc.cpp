// hiprtc: the text goes to the system's C++ compiler, behind pa_grid_cpu.h.
#include "emulator.h"
#include <cerrno>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RtcSuccess = 0, RtcInvalidInput = 3, RtcInvalidProgram = 4, RtcInvalidOption = 5, RtcCompilation = 6,
    RtcNoName = 10 };

struct Program {
    std::string text, log, code;
    std::vector<std::string> expressions;
};

static bool word(char c) { return isalnum((unsigned char)c) || c == '_'; }

// The text with comments blanked.
static std::string without_comments(const std::string &text)
{
    std::string out = text;
    for (size_t k = 0; k + 1 < out.size(); ++k) {
        const bool line = out.compare(k, 2, "//") == 0, block = out.compare(k, 2, "/*") == 0;
        if (!line && !block) continue;
        size_t end = out.find(line ? "\n" : "*/", k + 2);
        end = end == std::string::npos ? out.size() : end + (block ? 2 : 0);
        for (; k < end; ++k)
            if (out[k] != '\n') out[k] = ' ';
        --k;
    }
    return out;
}

static size_t behind_parentheses(const std::string &s, size_t at)
{
    for (int depth = 0; at < s.size(); ++at) {
        depth += s[at] == '(' ? 1 : s[at] == ')' ? -1 : 0;
        if (s[at] == ')' && !depth) return at + 1;
    }
    return at;
}

// The name before the first parenthesis that belongs to no attribute, from `at` on.
static std::string declared_name(const std::string &s, size_t at)
{
    std::string name;
    while (at < s.size() && s[at] != '(') {
        if (!word(s[at])) {
            ++at;
            continue;
        }
        const size_t start = at;
        while (at < s.size() && word(s[at])) ++at;
        name = s.substr(start, at - start);
        const size_t next = s.find_first_not_of(" \t\n\r", at);
        const bool attribute = name == "__launch_bounds__" || name == "__attribute__" || name == "__cluster_dims__";
        if (attribute && next != std::string::npos && s[next] == '(') at = behind_parentheses(s, next);
    }
    return name;
}

// Whether the declaration around `at` is a template: then only expressions name its instances.
static bool in_template(const std::string &s, size_t at)
{
    const size_t end = s.find_last_of(";}", at), from = end == std::string::npos ? 0 : end;
    return s.substr(from, at - from).find("template") != std::string::npos;
}

static std::vector<std::string> names_after(const std::string &s, const std::string &mark, bool kernels)
{
    std::vector<std::string> names;
    for (size_t at = 0; (at = s.find(mark, at)) != std::string::npos; at += mark.size()) {
        if (kernels && in_template(s, at)) continue;
        std::string name = kernels ? declared_name(s, at + mark.size()) : "";
        if (!kernels) {
            const size_t end = s.find('[', at);
            size_t last = s.find_last_not_of(" \t\n\r", end - 1), first = last;
            while (first > 0 && word(s[first - 1])) --first;
            if (end != std::string::npos && end < s.find(';', at)) name = s.substr(first, last + 1 - first);
        }
        bool known = name.empty();
        for (const auto &other : names) known |= other == name;
        if (!known) names.push_back(name);
    }
    return names;
}

static std::string whole_text(const Program &program)
{
    const std::string bare = without_comments(program.text);
    std::string text = "#include \"prelude.h\"\n#line 1 \"kernel.hip\"\n" + program.text + "\n";
    for (const auto &name : names_after(bare, "__global__", true))
        text += "PA_GRID_ENTRY(" + name + ", " + name + ")\n";
    for (size_t k = 0; k < program.expressions.size(); ++k)
        text += "PA_GRID_ENTRY(expression_" + std::to_string(k) + ", " + program.expressions[k] + ")\n";
    for (const auto &name : names_after(bare, "extern __shared__", false)) text += "PA_GRID_DYNAMIC(" + name + ")\n";
    return text;
}

static int call(const std::vector<std::string> &command, const std::string &log)
{
    std::vector<char *> arguments;
    for (const auto &a : command) arguments.push_back(const_cast<char *>(a.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child;
    int status = -1;
    if (posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ) == 0)
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    posix_spawn_file_actions_destroy(&actions);
    return status;
}

static bool make_folder(const std::string &path) { return mkdir(path.c_str(), 0700) == 0; }

static void remove_folder(const std::string &path, const std::vector<std::string> &names)
{
    for (const auto &name : names) unlink((path + "/" + name).c_str());
    rmdir(path.c_str());
}

// The shared object; empty, with the compiler's words, if there is none.
static std::string compile(const std::vector<std::string> &command, const std::string &text, std::string &log)
{
    const std::string place = fresh(temporary_folder() + "/hip-emulator", make_folder);
    std::string code;
    std::vector<std::string> whole = command;
    for (const auto &a : {place + "/kernel.cpp", std::string("-o"), place + "/kernel.so", std::string("-shared"),
        std::string("-Wl,-Bsymbolic"), std::string("-nostdlib"),
                          std::string("-lgcc")}) whole.push_back(a);
    if (!place.empty() && write_new(place + "/kernel.cpp", text)) {
        const int status = call(whole, place + "/log");
        log = read_all(place + "/log");
        if (status == 0) code = read_all(place + "/kernel.so");
        if (code.empty() && log.empty()) log = "can't run " + command[0];
    } else log = "can't write to " + temporary_folder() + ": " + strerror(errno);
    if (!place.empty()) remove_folder(place, {"kernel.cpp", "kernel.so", "log"});
    return code;
}

static uint64_t hash(const std::string &bytes)
{
    uint64_t h = 14695981039346656037u;
    for (unsigned char c : bytes) h = (h ^ c) * 1099511628211u;
    return h;
}

// All headers that a kernel may include.
static std::string headers()
{
    static const std::string all = [] {
        std::map<std::string, std::string> texts;
        if (DIR *folder = opendir(PA_DEVICE_HEADERS)) {
            while (const dirent *entry = readdir(folder)) {
                const std::string name = entry->d_name;
                if (name.size() > 2 && name.substr(name.size() - 2) == ".h")
                    texts[name] = read_all(PA_DEVICE_HEADERS "/" + name);
            }
            closedir(folder);
        }
        std::string joined;
        for (const auto &[name, text] : texts) joined += name + '\n' + text;
        return std::to_string(hash(joined));
    }();
    return all;
}

// What nearly every kernel includes, read by the compiler once per command: a folder with it.
static std::string prelude(const std::string &folder, const std::vector<std::string> &command, uint64_t key)
{
    const std::string place = folder + "/" + std::to_string(key);
    if (access(place.c_str(), F_OK) == 0) return place;
    const std::string made = fresh(place, make_folder);
    std::string text = "#include \"pa_grid_cpu.h\"\n";
    for (const char *name : {"base", "real", "int", "half", "complex", "atomic", "check"})
        text += std::string("#include \"pa_") + name + ".h\"\n";
    if (made.empty() || !write_new(made + "/prelude.h", text)) return place;
    std::vector<std::string> whole = command;
    for (const auto &a : {std::string("-x"), std::string("c++-header"), made + "/prelude.h", std::string("-o"),
        made + "/prelude.h.gch"})
        whole.push_back(a);
    // without it the compiler reads the text; a part of it may have been written
    if (call(whole, made + "/log") != 0) unlink((made + "/prelude.h.gch").c_str());
    if (rename(made.c_str(), place.c_str()) != 0) // another was first
        remove_folder(made, {"prelude.h", "prelude.h.gch", "log"});
    return place;
}

// Compiled before, by any process: found by command and text, which stand in full before the code.
static std::string compiled(std::vector<std::string> command, const std::string &text, std::string &log)
{
    const char *cache = getenv("HIP_EMULATOR_CACHE");
    const std::string folder = cache ? cache : temporary_folder();
    std::string key = headers() + '\n';
    for (const auto &a : command) key += a + '\n';
    command.push_back("-I" + prelude(folder, command, hash(key)));
    key += text;
    key = std::to_string(key.size()) + "\n" + key;
    const std::string path = folder + "/" + std::to_string(hash(key)) + ".so", kept = read_all(path);
    if (kept.size() > key.size() && kept.compare(0, key.size(), key) == 0) return kept.substr(key.size());
    const std::string code = compile(command, text, log);
    if (code.empty()) return code;
    const std::string made = fresh(path, [&](const std::string &name) { return write_new(name, key + code); });
    if (!made.empty() && rename(made.c_str(), path.c_str()) != 0) unlink(made.c_str());
    return code;
}

// Options of hiprtc to the compiler's; false for one that hiprtc doesn't know.
static bool translate(const std::string &option, std::vector<std::string> &command, std::string &target)
{
    const auto starts = [&](const char *s) { return option.compare(0, strlen(s), s) == 0; };
    if (starts("--offload-arch=")) target = option.substr(15, option.find(':') - 15);
    else if (starts("-I") || starts("-D") || starts("-std=") || starts("-ffp-contract=") || option == "-w")
        command.push_back(option);
    else return starts("-O") || starts("-m") || starts("-f") || starts("-W") || starts("-amdgpu-") || starts("-slp-");
    return true;
}

// It makes no AMD code: where that is executed it is as if hiprtc were missing.
EXPORT int hiprtcVersion(int *major, int *minor)
{
    return *major = 7, *minor = 0, isa_target() ? (int)RtcInvalidInput : (int)RtcSuccess;
}

EXPORT const char *hiprtcGetErrorString(int code)
{
    return code == RtcCompilation ? "HIPRTC_ERROR_COMPILATION" : code ? "HIPRTC_ERROR" : "HIPRTC_SUCCESS";
}

EXPORT int hiprtcCreateProgram(Program **out, const char *text, const char *, int headers, const char **, const char **)
{
    if (!text || headers) return RtcInvalidInput;
    *out = new Program{text, "", "", {}};
    return RtcSuccess;
}

EXPORT int hiprtcDestroyProgram(Program **program)
{
    if (!program || !*program) return RtcInvalidProgram;
    delete *program;
    *program = nullptr;
    return RtcSuccess;
}

EXPORT int hiprtcAddNameExpression(Program *program, const char *expression)
{
    return program->expressions.push_back(expression), RtcSuccess;
}

EXPORT int hiprtcGetLoweredName(Program *program, const char *expression, const char **name)
{
    static std::set<std::string> names; // what is answered stays
    for (size_t k = 0; k < program->expressions.size(); ++k)
        if (program->expressions[k] == expression)
            return *name = names.insert("expression_" + std::to_string(k)).first->c_str(), RtcSuccess;
    return RtcNoName;
}

EXPORT int hiprtcCompileProgram(Program *program, int count, const char **options)
{
    const char *compiler = getenv("HIP_EMULATOR_CXX");
    std::vector<std::string> command = {compiler ? compiler : "c++", "-Og", "-fPIC", "-pipe", "-fno-exceptions",
                                        "-fno-rtti", "-fno-strict-aliasing", "-fno-math-errno", "-I" PA_DEVICE_HEADERS,
                                        "-DPA_GRID_RUNTIME=1",
                                        "-D__HIPCC_RTC__=1", "-D__HIP_PLATFORM_AMD__=1"};
    std::string target = emulator.devices[current_device].target;
    for (int k = 0; k < count; ++k)
        if (!translate(options[k], command, target)) {
            program->log = std::string("error: unknown argument: '") + options[k] + "'\n";
            return RtcInvalidOption;
        }
    const Device *device = nullptr;
    for (const Device &d : emulator.devices) device = target == d.target ? &d : device;
    if (!device) abort(); // as the real one does
    command.push_back("-DPA_GRID_LANES=" + std::to_string(device->warp));
    command.push_back("-D__" + target + "__=1");
    program->code = compiled(command, whole_text(*program), program->log);
    if (program->code.empty()) return RtcCompilation;
    char head[64] = "HIPEMUL";
    strcpy(head + 8, target.c_str());
    const uint64_t size = program->code.size();
    memcpy(head + 56, &size, 8);
    program->code.insert(0, head, 64);
    return RtcSuccess;
}

EXPORT int hiprtcGetProgramLogSize(Program *program, size_t *size) {
    return *size = program->log.size() + 1, RtcSuccess;
}
EXPORT int hiprtcGetProgramLog(Program *program, char *log) { return strcpy(log, program->log.c_str()), RtcSuccess; }
EXPORT int hiprtcGetCodeSize(Program *program, size_t *size) { return *size = program->code.size(), RtcSuccess; }
EXPORT int hiprtcGetCode(Program *program, char *code)
{
    return memcpy(code, program->code.data(), program->code.size()), RtcSuccess;
}
