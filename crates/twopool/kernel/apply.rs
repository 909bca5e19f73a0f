//! Publishes policies: a fresh map filled off-line, then one write to the slot.
//!
//! The kernel program reaches the policy through a one-slot array of maps. When the write to the
//! slot returns, the kernel has waited for every program that still looked at the old image, so
//! it may block for tens of milliseconds: call from a thread that may.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, libbpf_sys};
use twopool_policy::image::Image;

use super::abi::{self, types};

/// Somewhere a policy can be put in force; a scheduler's slot, or a test's.
pub trait Publish: Send + Sync {
    /// Makes `image`, whose epoch must be set, the policy in force. May block for 50 ms.
    ///
    /// # Errors
    /// The kernel has no memory for the map, or refuses it.
    fn publish(&self, image: &Image) -> io::Result<()>;
}

/// The slot of a loaded scheduler; keeps working (and changes nothing any more) when that is gone.
#[derive(Debug)]
pub struct PolicySlot {
    slot: MapHandle,
}

impl PolicySlot {
    /// The slot of the map `policy`.
    pub fn new(policy: MapHandle) -> Self {
        Self { slot: policy }
    }
}

impl Publish for PolicySlot {
    fn publish(&self, image: &Image) -> io::Result<()> {
        assert_ne!(
            image.epoch(),
            0,
            "epoch 0 never occurs in a published image"
        );
        // Flags must equal those of `struct policy_map` in bpf/kernel.h, or the slot refuses it.
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            map_flags: libbpf_sys::BPF_F_MMAPABLE,
            ..Default::default()
        };
        let value_size = size_of::<types::policy_image>() as u32;
        let map = MapHandle::create(
            MapType::Array,
            Some("policy_image"),
            4,
            value_size,
            1,
            &options,
        )
        .map_err(io::Error::other)?;
        abi::fill_policy_map(map.as_fd(), image.as_bytes())?;
        let value = map.as_fd().as_raw_fd().to_ne_bytes();
        self.slot
            .update(&0_u32.to_ne_bytes(), &value, MapFlags::ANY)
            .map_err(io::Error::other)
    }
}
