//! The allocator of a policy: memory dies with the call, so that most of it is handed out in order and never taken back.
//!
//! The first part comes from an arena that the component brings along. Asking the host for more memory costs a
//! system call at each step, which for a short call is more than all of its work; with the arena most calls ask for
//! none. Beyond it the usual allocator serves.
#![allow(unsafe_code, reason = "an allocator is unsafe by its nature; this module exists to hold it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};

/// Bytes of the arena. Of a larger one every call would have more pages to look at when it is wiped.
const ARENA: usize = 128 << 10;

/// See the module.
pub struct Heap {
    arena: UnsafeCell<[u8; ARENA]>,
    /// Offset of the first byte that was not handed out.
    next: Cell<usize>,
}

// SAFETY: a policy has one thread: the target has no others, and the host offers none.
unsafe impl Sync for Heap {}

impl Heap {
    /// An arena of which nothing is handed out.
    pub const fn new() -> Self {
        Self { arena: UnsafeCell::new([0; ARENA]), next: Cell::new(0) }
    }

    /// The offset of a block of the arena; `None`: it came from elsewhere.
    fn offset(&self, block: *mut u8) -> Option<usize> {
        let offset = (block as usize).wrapping_sub(self.arena.get() as usize);
        (offset < ARENA).then_some(offset)
    }
}

impl Default for Heap {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: blocks of the arena begin where the last one ended or later, and end within it; an end is taken back only
// where its block was the last. All other blocks are the system's.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.arena.get() as usize;
        let start = (base + self.next.get()).next_multiple_of(layout.align()) - base;
        match start.checked_add(layout.size()).filter(|end| *end <= ARENA) {
            Some(end) => {
                self.next.set(end);
                // SAFETY: `start` is within the arena.
                unsafe { self.arena.get().cast::<u8>().add(start) }
            }
            // SAFETY: as the caller promises.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match self.offset(block) {
            Some(start) if start + layout.size() == self.next.get() => self.next.set(start),
            Some(_) => {}
            // SAFETY: not of the arena, so the system's.
            None => unsafe { System.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(start) = self.offset(block) else {
            // SAFETY: not of the arena, so the system's.
            return unsafe { System.realloc(block, layout, size) };
        };
        let last = start + layout.size() == self.next.get();
        if last && start + size <= ARENA {
            self.next.set(start + size);
            return block;
        }
        // SAFETY: the new block has room for what is copied, and lies elsewhere: this one was not taken back yet.
        unsafe {
            let to = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !to.is_null() {
                block.copy_to_nonoverlapping(to, layout.size().min(size));
            }
            to
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn blocks_are_aligned_apart_and_grow_in_place_at_the_end() {
        let heap = Box::new(Heap::new());
        // SAFETY: each block is used within its size, and given back with the layout that it was asked for with.
        unsafe {
            let one = heap.alloc(layout(3, 1));
            let two = heap.alloc(layout(16, 16));
            assert_eq!(two as usize % 16, 0);
            assert!(two as usize >= one as usize + 3);
            two.write_bytes(7, 16);
            assert_eq!(heap.realloc(two, layout(16, 16), 64), two);
            let moved = heap.realloc(one, layout(3, 1), 9);
            assert!(moved as usize >= two as usize + 64);
            assert_eq!(two.add(15).read(), 7);
            heap.dealloc(moved, layout(9, 1));
            assert_eq!(heap.alloc(layout(9, 1)), moved);
        }
    }

    #[test]
    fn what_does_not_fit_comes_from_the_system() {
        let heap = Box::new(Heap::new());
        // SAFETY: as above.
        unsafe {
            let large = heap.alloc(layout(ARENA + 1, 8));
            assert!(!large.is_null() && heap.offset(large).is_none());
            heap.dealloc(large, layout(ARENA + 1, 8));
            let most = heap.alloc(layout(ARENA - 64, 1));
            most.write_bytes(1, ARENA - 64);
            let outgrown = heap.realloc(most, layout(ARENA - 64, 1), ARENA + 64);
            assert!(heap.offset(outgrown).is_none());
            assert_eq!(outgrown.add(ARENA - 65).read(), 1);
            heap.dealloc(outgrown, layout(ARENA + 64, 1));
        }
    }
}
