//! Half-precision numbers of files: widened exactly, or rounded to the nearest.

/// Widens IEEE half precision.
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + fraction) * 2f32.powi(exponent - 25),
    }
}

/// Rounds to IEEE half precision: to the nearest, of two as near to the even one. What is too large becomes infinite.
pub(crate) fn f32_to_f16(value: f32) -> u16 {
    let (sign, magnitude) = ((value.to_bits() >> 16) as u16 & 0x8000, value.abs());
    let rounded = match magnitude.to_bits() {
        // Halfway between the greatest half and what would come after it.
        _ if magnitude >= 65520.0 => 0x7c00,
        // Below the least normal half: a multiple of 2^-24.
        bits if bits < 0x3880_0000 => (magnitude * 2f32.powi(24)).round_ties_even() as u16,
        // The exponent loses 112 of its offset, the fraction 13 of its bits.
        bits => ((bits + 0xfff + (bits >> 13 & 1) - (112 << 23)) >> 13) as u16,
    };
    sign | rounded
}

/// Widens bfloat16: the upper half of an `f32`.
pub(crate) fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_is_its_own_nearest() {
        for bits in (0..=u16::MAX).filter(|bits| !f16_to_f32(*bits).is_nan()) {
            assert_eq!(f32_to_f16(f16_to_f32(bits)), bits, "{bits:#06x}");
        }
    }

    #[test]
    fn values_between_two_halves_go_to_the_nearer_or_the_even_one() {
        let finite = (0..0x7bffu16).map(|bits| (bits, f16_to_f32(bits), f16_to_f32(bits + 1)));
        for (bits, low, high) in finite {
            let middle = (low + high) / 2.0; // exact: it needs one bit more than a half has
            let even = bits + (bits & 1);
            let cases = [(middle.next_down(), bits), (middle, even), (middle.next_up(), bits + 1)];
            for (value, nearest) in cases {
                assert_eq!(f32_to_f16(value), nearest, "{value}");
                assert_eq!(f32_to_f16(-value), 0x8000 | nearest, "-{value}");
            }
        }
        assert_eq!([65519.9, 65520.0, f32::MAX].map(f32_to_f16), [0x7bff, 0x7c00, 0x7c00]);
    }

    #[test]
    fn halves_widen_exactly() {
        // IEEE 754 binary16: 1, -2, largest, smallest normal, smallest subnormal, infinity
        let cases = [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0400, 2f32.powi(-14)),
            (0x0001, 2f32.powi(-24)),
            (0x7c00, f32::INFINITY),
        ];
        for (bits, value) in cases {
            assert_eq!(f16_to_f32(bits), value, "{bits:#06x}");
        }
        assert!(f16_to_f32(0x8000).is_sign_negative() && f16_to_f32(0x7e00).is_nan());
        assert_eq!((bf16_to_f32(0x3f80), bf16_to_f32(0xc040)), (1.0, -3.0));
    }
}
