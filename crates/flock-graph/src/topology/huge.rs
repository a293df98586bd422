//! Large memory pages for the big arrays that are read at random.
//!
//! A walk on a graph of gigabytes misses the address cache (TLB) at every read. With pages of 2 MB
//! instead of 4 KB most of these misses become hits. This is a hint to the system. Where the system
//! ignores it, only the speed changes.

/// Returns a vector with `count` copies of `value`, on large pages if it is big enough and the
/// system has them.
pub(super) fn filled<T: Copy>(value: T, count: usize) -> Vec<T> {
    let mut array = Vec::with_capacity(count);
    advise(array.spare_capacity_mut()); // before the first write, because that is when the system makes pages
    array.resize(count, value);
    array
}

fn advise<T>(array: &[T]) {
    #[cfg(target_os = "linux")]
    {
        use std::ffi::{c_int, c_void};
        const MADV_HUGEPAGE: c_int = 14; // the same on every Linux architecture
        const LARGE: usize = 2 << 20;
        unsafe extern "C" {
            fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
        }
        // Advise only on whole large pages inside the array. Memory beside it belongs to others.
        let start = array.as_ptr() as usize;
        let first = start.next_multiple_of(LARGE);
        let end = (start + size_of_val(array)) / LARGE * LARGE;
        if first < end {
            // SAFETY: the range lies within one live allocation, and this advice changes no contents and no validity; an error
            // return means that the hint was not taken.
            unsafe { madvise(first as *mut c_void, end - first, MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = array;
}
