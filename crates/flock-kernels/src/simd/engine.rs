//! Instruction sets and precisions as values: which of them this machine has, and how a kernel runs on one.

#[cfg(target_arch = "x86_64")]
use super::{Avx2, Avx512, Bf16};
use super::{Bf16Emulated, F32, Lanes, Mac, round_bf16};
use std::fmt;
use std::str::FromStr;

/// An instruction set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Eight-lane arrays, left to the compiler.
    Portable,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
}

/// The precision of multiplications. Accumulators and states are `f32` in both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precision {
    /// 32-bit operands.
    F32,
    /// Operands rounded to bf16.
    Bf16,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Portable => "portable",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        })
    }
}

impl FromStr for Level {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        [Level::Portable, Level::Avx2, Level::Avx512]
            .into_iter()
            .find(|l| l.to_string() == s)
            .ok_or_else(|| format!("unknown SIMD level {s:?}; expected avx512, avx2 or portable"))
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Precision::F32 => "f32",
            Precision::Bf16 => "bf16",
        })
    }
}

impl FromStr for Precision {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "f32" => Ok(Precision::F32),
            "bf16" => Ok(Precision::Bf16),
            _ => Err(format!("unknown precision {s:?}; expected f32 or bf16")),
        }
    }
}

impl Level {
    /// Whether this machine has it.
    pub fn is_available(self) -> bool {
        match self {
            Level::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// All levels of this machine, slowest first.
    pub fn available() -> impl Iterator<Item = Level> {
        [Level::Portable, Level::Avx2, Level::Avx512].into_iter().filter(|l| l.is_available())
    }

    /// The level `FLOCK_SIMD` names, or else the best of this machine.
    pub fn detect() -> Result<Level, String> {
        match std::env::var("FLOCK_SIMD") {
            Ok(name) if !name.is_empty() => {
                let level: Level = name.parse().map_err(|e| format!("FLOCK_SIMD: {e}"))?;
                if !level.is_available() {
                    return Err(format!("FLOCK_SIMD: this machine has no {level}; unset it to use the best level"));
                }
                Ok(level)
            }
            _ => Ok(Level::available().last().unwrap_or(Level::Portable)),
        }
    }
}

/// Whether bf16 products run on AVX512-BF16 rather than by emulation.
pub fn has_native_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512bf16");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// How an engine stores operands; packed weights must have been made for the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Storage {
    /// One `f32` per unit.
    F32,
    /// One `f32`, rounded to bf16, per unit.
    Rounded,
    /// Two bf16 per unit.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    Pairs,
}

impl Storage {
    /// The unit of the neighbouring inner-dimension elements `w0`, `w1` (`w1` only for pairs).
    pub(crate) fn unit(self, w0: f32, w1: f32) -> u32 {
        match self {
            Storage::F32 => w0.to_bits(),
            Storage::Rounded => round_bf16(w0).to_bits(),
            Storage::Pairs => round_bf16(w0).to_bits() >> 16 | round_bf16(w1).to_bits() & 0xffff_0000,
        }
    }
}

/// An instruction set and a precision: how kernels run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Engine {
    level: Level,
    storage: Storage,
    /// Sixteen-lane portable vectors: the tile shapes of AVX-512 for tests on machines without it.
    wide_portable: bool,
}

/// Work that can run on any engine.
pub(crate) trait Kernel {
    type Out;
    /// # Safety
    /// Called by [`Engine::run`] alone, where `M`'s instructions are enabled.
    unsafe fn run<M: Mac>(self) -> Self::Out;
}

impl Engine {
    /// The engine for a level this machine has. `None` if it has not.
    pub fn new(level: Level, precision: Precision) -> Option<Engine> {
        let storage = match precision {
            Precision::F32 => Storage::F32,
            #[cfg(target_arch = "x86_64")]
            Precision::Bf16 if level == Level::Avx512 && has_native_bf16() => Storage::Pairs,
            Precision::Bf16 => Storage::Rounded,
        };
        level.is_available().then_some(Engine { level, storage, wide_portable: false })
    }

    /// Every engine that can run here, for tests: all levels, both precisions, and the portable sixteen-lane one.
    pub fn all() -> Vec<Engine> {
        let mut engines: Vec<Engine> = Level::available()
            .flat_map(|l| [Precision::F32, Precision::Bf16].into_iter().filter_map(move |p| Engine::new(l, p)))
            .collect();
        for storage in [Storage::F32, Storage::Rounded] {
            engines.push(Engine { level: Level::Portable, storage, wide_portable: true });
            // AVX-512 without BF16 rounds instead of pairing: a machine that has both must test both.
            if has_native_bf16() && Level::Avx512.is_available() && storage == Storage::Rounded {
                engines.push(Engine { level: Level::Avx512, storage, wide_portable: false });
            }
        }
        engines
    }

    /// The instruction set.
    pub fn level(self) -> Level {
        self.level
    }

    /// The precision of multiplications.
    pub fn precision(self) -> Precision {
        match self.storage {
            Storage::F32 => Precision::F32,
            _ => Precision::Bf16,
        }
    }

    /// Whether bf16 is emulated here.
    pub fn is_emulated(self) -> bool {
        self.storage == Storage::Rounded
    }

    pub(crate) fn storage(self) -> Storage {
        self.storage
    }

    pub(crate) fn lanes(self) -> usize {
        if self.level == Level::Avx512 || self.wide_portable { 16 } else { 8 }
    }

    /// Inner-dimension elements per unit.
    pub(crate) fn k_per(self) -> usize {
        if self.storage == Storage::Pairs { 2 } else { 1 }
    }

    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Out {
        // SAFETY: `Engine::new` makes an engine only for an available level, and pairs only where AVX512-BF16 is.
        unsafe {
            match (self.level, self.storage) {
                #[cfg(target_arch = "x86_64")]
                (Level::Avx2, Storage::F32) => run_avx2::<K, F32<Avx2>>(kernel),
                #[cfg(target_arch = "x86_64")]
                (Level::Avx2, _) => run_avx2::<K, Bf16Emulated<Avx2>>(kernel),
                #[cfg(target_arch = "x86_64")]
                (Level::Avx512, Storage::F32) => run_avx512::<K, F32<Avx512>>(kernel),
                #[cfg(target_arch = "x86_64")]
                (Level::Avx512, Storage::Rounded) => run_avx512::<K, Bf16Emulated<Avx512>>(kernel),
                #[cfg(target_arch = "x86_64")]
                (Level::Avx512, Storage::Pairs) => run_avx512_bf16(kernel),
                (_, Storage::F32) if self.wide_portable => kernel.run::<F32<Lanes<16>>>(),
                (_, _) if self.wide_portable => kernel.run::<Bf16Emulated<Lanes<16>>>(),
                (_, Storage::F32) => kernel.run::<F32<Lanes<8>>>(),
                (_, _) => kernel.run::<Bf16Emulated<Lanes<8>>>(),
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn run_avx2<K: Kernel, M: Mac>(kernel: K) -> K::Out {
    unsafe { kernel.run::<M>() }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn run_avx512<K: Kernel, M: Mac>(kernel: K) -> K::Out {
    unsafe { kernel.run::<M>() }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
unsafe fn run_avx512_bf16<K: Kernel>(kernel: K) -> K::Out {
    unsafe { kernel.run::<Bf16>() }
}
