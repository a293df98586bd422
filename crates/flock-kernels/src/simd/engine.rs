//! Instruction sets and precisions as values: which of them this machine has, and how to run a
//! kernel on them.

#[cfg(target_arch = "x86_64")]
use super::{Avx2, Avx512, Bf16};
use super::{Bf16Emulated, F32, Lanes, Mac, round_bf16};
use std::fmt;
use std::str::FromStr;

/// An instruction set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Arrays of eight lanes without intrinsics.
    Portable,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
}

/// The precision of multiplications. Accumulators and states are always `f32`.
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

impl Precision {
    /// Returns the faster precision at a level: bf16 where the processor multiplies it, else `f32`.
    pub fn fastest(level: Level) -> Precision {
        if level.has_native_bf16() { Precision::Bf16 } else { Precision::F32 }
    }
}

impl Level {
    /// Tells whether this machine has the level.
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

    /// Tells whether bf16 products at this level run on AVX512-BF16. Otherwise they are emulated.
    pub fn has_native_bf16(self) -> bool {
        self == Level::Avx512 && has_native_bf16()
    }

    /// Lists all levels of this machine, slowest first.
    pub fn available() -> impl Iterator<Item = Level> {
        [Level::Portable, Level::Avx2, Level::Avx512].into_iter().filter(|l| l.is_available())
    }

    /// Returns the level that `FLOCK_SIMD` names, or else the best level of this machine.
    ///
    /// # Errors
    /// If `FLOCK_SIMD` names an unknown level, or one that this machine does not have.
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

/// Tells whether this machine has AVX512-BF16.
fn has_native_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512bf16");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// How an engine stores operands. Weights can be used only by engines with the storage they were
/// packed for.
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
    /// Packs the neighbouring inner-dimension elements `w0` and `w1` into a unit. Only pairs use
    /// `w1`.
    pub(crate) fn unit(self, w0: f32, w1: f32) -> u32 {
        match self {
            Storage::F32 => w0.to_bits(),
            Storage::Rounded => round_bf16(w0).to_bits(),
            Storage::Pairs => round_bf16(w0).to_bits() >> 16 | round_bf16(w1).to_bits() & 0xffff_0000,
        }
    }
}

/// An instruction set and a precision to run kernels with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Engine {
    level: Level,
    storage: Storage,
    /// Whether portable vectors have sixteen lanes. They have the tile shapes of AVX-512, for tests
    /// on machines without it.
    wide_portable: bool,
}

/// Work that can run on any engine.
pub trait Kernel {
    /// What it returns.
    type Out;
    /// Does the work.
    ///
    /// # Safety
    /// Only `Engine::run` and [`Mac::call`] may call this, because they enable the instructions of
    /// `M`.
    unsafe fn run<M: Mac>(self) -> Self::Out;
}

impl Engine {
    /// Makes an engine. Returns `None` if this machine does not have the level.
    pub fn new(level: Level, precision: Precision) -> Option<Engine> {
        let storage = match precision {
            Precision::F32 => Storage::F32,
            #[cfg(target_arch = "x86_64")]
            Precision::Bf16 if level.has_native_bf16() => Storage::Pairs,
            Precision::Bf16 => Storage::Rounded,
        };
        level.is_available().then_some(Engine { level, storage, wide_portable: false })
    }

    /// Lists every engine that can run here, for tests: all levels, both precisions, and portable
    /// vectors of sixteen lanes. A release build leaves these out: they would be a quarter of its
    /// kernels.
    pub fn all() -> Vec<Engine> {
        let mut engines: Vec<Engine> = Level::available()
            .flat_map(|l| [Precision::F32, Precision::Bf16].into_iter().filter_map(move |p| Engine::new(l, p)))
            .collect();
        for storage in [Storage::F32, Storage::Rounded] {
            if cfg!(test) {
                engines.push(Engine { level: Level::Portable, storage, wide_portable: true });
            }
            // AVX-512 without BF16 uses rounded units instead of pairs. A machine that has both
            // must test both.
            if has_native_bf16() && Level::Avx512.is_available() && storage == Storage::Rounded {
                engines.push(Engine { level: Level::Avx512, storage, wide_portable: false });
            }
        }
        engines
    }

    /// Returns the instruction set.
    pub fn level(self) -> Level {
        self.level
    }

    /// Returns the precision of multiplications.
    pub fn precision(self) -> Precision {
        match self.storage {
            Storage::F32 => Precision::F32,
            _ => Precision::Bf16,
        }
    }

    /// Tells whether this engine emulates bf16.
    pub fn is_emulated(self) -> bool {
        self.storage == Storage::Rounded
    }

    pub(crate) fn storage(self) -> Storage {
        self.storage
    }

    pub(crate) fn lanes(self) -> usize {
        if self.level == Level::Avx512 || self.wide_portable { 16 } else { 8 }
    }

    /// Returns the number of inner-dimension elements in a unit.
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
                #[cfg(test)]
                (_, Storage::F32) if self.wide_portable => kernel.run::<F32<Lanes<16>>>(),
                #[cfg(test)]
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
