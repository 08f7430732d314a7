// Faults of kernels and copies: a signal ends the work and breaks the device, as an illegal address does on the real
// one.
#include "emulator.h"
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>

static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static struct sigaction before[4];
static thread_local sigjmp_buf *way_out;
static thread_local uintptr_t fault_address;

static void on_signal(int number, siginfo_t *info, void *context)
{
    if (way_out) {
        fault_address = (uintptr_t)info->si_addr;
        siglongjmp(*way_out, number);
    }
    for (int k = 0; k < 4; ++k) {
        if (SIGNALS[k] != number) continue;
        if (before[k].sa_flags & SA_SIGINFO) before[k].sa_sigaction(number, info, context);
        else if (before[k].sa_handler == SIG_DFL || before[k].sa_handler == SIG_IGN)
            sigaction(number, &before[k], nullptr);
        else before[k].sa_handler(number);
    }
}

// Whoever installed a handler since gets what isn't ours.
static void watch()
{
    struct sigaction ours = {}, there;
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int k = 0; k < 4; ++k) {
        sigaction(SIGNALS[k], nullptr, &there);
        if ((there.sa_flags & SA_SIGINFO) && there.sa_sigaction == on_signal) continue;
        before[k] = there;
        sigaction(SIGNALS[k], &ours, nullptr);
    }
}

// A fault may be an overflow of the stack it happens on.
static void own_stack()
{
    stack_t there;
    sigaltstack(nullptr, &there);
    if (!(there.ss_flags & SS_DISABLE)) return;
    const size_t size = 64 << 10;
    stack_t fresh = {};
    fresh.ss_sp = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fresh.ss_size = size;
    sigaltstack(&fresh, nullptr);
}

// Asked for, the host can't touch memory of devices: a thousand blocks take a millisecond to open for each piece of
// work.
static void shut()
{
    static const bool asked = getenv("HIP_EMULATOR_APART");
    if (asked) reach(NO_DEVICE);
}

int guarded(int device, const std::string &what, const std::function<int()> &work, int reaches)
{
    reach(reaches);
    static thread_local bool ready;
    if (!ready) own_stack();
    ready = true;
    watch();
    sigjmp_buf here, *outer = way_out;
    const int number = sigsetjmp(here, 1);
    if (number) {
        way_out = outer;
        shut();
        if (number == SIGFPE) return broke(device, LaunchFailure, what + " divided an integer by zero");
        if (number == SIGILL) return broke(device, LaunchFailure, what + " trapped");
        return broke(device, IllegalAddress, what + " touched " + describe(fault_address));
    }
    way_out = &here;
    int code = work();
    way_out = outer;
    if (!code && !check_margins(device)) code = broke(device, IllegalAddress, what + " wrote beside its memory: "
        + emulator.fault);
    shut();
    return code;
}

int broke(int device, int code, const std::string &words)
{
    emulator.fault = words;
    emulator.devices[device].broken = code;
    if (getenv("HIP_EMULATOR_TALK")) fprintf(stderr, "hip emulator: device %d: %s\n", device, words.c_str());
    return code;
}
