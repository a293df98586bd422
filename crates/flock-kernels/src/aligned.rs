//! A growable buffer of `f32` or `u32` that starts at a cache line.
//!
//! Kernels load whole vectors, and a vector that straddles two cache lines costs twice. `Vec<f32>`
//! guarantees an alignment of 4 bytes only.

use std::ops::{Deref, DerefMut};

/// One cache line. It exists for its alignment.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u32; LINE]);

const LINE: usize = 16;

mod sealed {
    pub trait Word: Copy + Default {}
    impl Word for f32 {}
    impl Word for u32 {}
}
use sealed::Word;

/// A 64-byte aligned vector of 32-bit words.
#[derive(Clone)]
pub struct AlignedVec<T> {
    lines: Vec<Line>,
    len: usize,
    word: std::marker::PhantomData<T>,
}

impl<T: Word> AlignedVec<T> {
    /// Makes a buffer of `len` zeros.
    pub fn zeros(len: usize) -> Self {
        let lines = vec![Line([0; LINE]); len.div_ceil(LINE)];
        Self { lines, len, word: std::marker::PhantomData }
    }

    /// Copies `data`.
    pub fn from_slice(data: &[T]) -> Self {
        let mut buffer = Self::zeros(data.len());
        buffer.copy_from_slice(data);
        buffer
    }

    /// Changes the length. New elements are zero or left over from an earlier use. Memory is never
    /// given back.
    pub fn resize(&mut self, len: usize) {
        if len > self.lines.len() * LINE {
            let want = len.div_ceil(LINE).max(self.lines.len() + self.lines.len() / 2);
            self.lines.resize(want, Line([0; LINE]));
        }
        self.len = len;
    }
}

impl<T: Word> Default for AlignedVec<T> {
    fn default() -> Self {
        Self::zeros(0)
    }
}

impl<T: Word> Deref for AlignedVec<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `lines` owns at least `len` 32-bit words, initialised; T is f32 or u32 (sealed), for which any bits
        // are a value and whose alignment is below the line's.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl<T: Word> DerefMut for AlignedVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and the borrow is unique.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_on_a_cache_line_and_keeps_its_words() {
        let mut buffer = AlignedVec::from_slice(&[1.0f32, 2.0, 3.0]);
        assert_eq!(buffer.as_ptr() as usize % 64, 0);
        buffer.resize(40);
        assert_eq!(buffer.as_ptr() as usize % 64, 0);
        assert_eq!(&buffer[..4], &[1.0, 2.0, 3.0, 0.0]);
        assert_eq!(buffer.len(), 40);
    }
}
