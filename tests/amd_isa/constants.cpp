// The instruction that helps to reduce large arguments of sin and cos: 53 bits of 2/pi, from where its argument says.
#include "isa_math.h"

extern const uint64_t two_over_pi_bits[];

double isa_two_over_pi(double x, uint32_t segment)
{
    const int exponent = isa_exponent64(x);
    int shift = (int)segment * 53 + (exponent > 1077 ? exponent - 1077 : 0), scale = -53 - shift;
    uint64_t bits = 0;
    for (int k = 0; k < 53; ++k) {
        const int at = shift + k; // from the highest
        bits = bits << 1 | (at < 1201 ? two_over_pi_bits[at / 64] >> (63 - at % 64) & 1 : 0);
    }
    if (exponent >= 1968) scale += 128;
    return ldexp((double)bits, scale);
}
