//! Makes the CPUs of a machine that is emulated one CPU after the other take short turns.
//!
//! Under instruction counting QEMU executes each virtual CPU up to the next deadline of any timer of
//! the machine. A thread that is due to stop while its CPU waits for its turn stops late, and is
//! charged for it; a wake is late for the same reason. Where ticks at 4 ms are the only timers that
//! came to 0.3 to 0.6 ms a request, and differed between schedulers, since some arm more timers.
//!
//! The interval timer of old PCs is one more deadline, ten thousand times a second, and costs the guest
//! nothing: Linux has masked its interrupt by then. It is started from an ACPI table, whose code every
//! kernel runs while it looks for devices, whether or not it lets programs write to ports. The machine
//! must have no HPET, which Linux would use to replace this timer.

/// 1193182 Hz over this is 10,027 Hz.
const DIVISOR: u16 = 119;
/// Channel 0, both bytes, mode 2: counts down again and again.
const CHANNEL_0_MODE_2: u8 = 0x34;
/// PNP0C02, a board's resources, as ACPI packs names.
const BOARD_RESOURCES: [u8; 4] = [0x41, 0xd0, 0x0c, 0x02];

/// The body of a secondary system description table; QEMU puts the header before it. In ACPI's
/// source language:
///
/// ```text
/// Scope (\_SB) { Device (METR) {
///     Name (_HID, EisaId ("PNP0C02"))
///     OperationRegion (PITR, SystemIO, 0x40, 0x04)
///     Field (PITR, ByteAcc, NoLock, Preserve) { CH0, 8, , 16, CMD, 8 }
///     Method (_INI) { CMD = 0x34  CH0 = low  CH0 = high }
/// } }
/// ```
pub fn table() -> Vec<u8> {
    let [low, high] = DIVISOR.to_le_bytes();
    let hid = [&[0x08][..], b"_HID", &[0x0c], &BOARD_RESOURCES].concat();
    let region = [&[0x5b, 0x80][..], b"PITR", &[0x01, 0x0a, 0x40, 0x0a, 0x04]].concat();
    let fields = [
        &b"PITR"[..],
        &[0x01],
        b"CH0_",
        &[8, 0x00, 16],
        b"CMD_",
        &[8],
    ]
    .concat();
    let method = [
        &b"_INI"[..],
        &[0x00],
        &store(CHANNEL_0_MODE_2, b"CMD_"),
        &store(low, b"CH0_"),
        &store(high, b"CH0_"),
    ]
    .concat();
    let device = [
        &b"METR"[..],
        &hid,
        &region,
        &package(&[0x5b, 0x81], &fields),
        &package(&[0x14], &method),
    ]
    .concat();
    package(
        &[0x10],
        &[&b"\\_SB_"[..], &package(&[0x5b, 0x82], &device)].concat(),
    )
}

fn store(value: u8, field: &[u8; 4]) -> Vec<u8> {
    [&[0x70, 0x0a, value][..], field].concat()
}

/// An operation, the length of what follows including the length itself, and what follows. Lengths
/// below 64 take one byte, below 4096 two: the low four bits first.
fn package(operation: &[u8], body: &[u8]) -> Vec<u8> {
    let length = match body.len() + 1 {
        short @ ..64 => vec![short as u8],
        _ => {
            let long = body.len() + 2;
            assert!(long < 4096, "a table of {long} bytes");
            vec![0x40 | (long & 0xf) as u8, (long >> 4) as u8]
        }
    };
    [operation, &length, body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_count_themselves() {
        assert_eq!(package(&[0x14], &[7; 3]), [0x14, 4, 7, 7, 7]);
        assert_eq!(package(&[0x14], &[7; 62])[1], 63);
        assert_eq!(package(&[0x10], &[7; 63])[..3], [0x10, 0x41, 0x04]);
    }

    #[test]
    fn every_length_leads_to_the_end() {
        let table = table();
        // Scope, then the device, whose ends are the table's.
        let long = |at: usize| usize::from(table[at] & 0xf) + usize::from(table[at + 1]) * 16;
        assert_eq!(1 + long(1), table.len());
        assert_eq!(table[8..10], [0x5b, 0x82]);
        assert_eq!(10 + long(10), table.len());
    }
}
