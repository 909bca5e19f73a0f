//! Signals as events.

use std::io;
use std::sync::mpsc::Sender;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::event_loop::Event;

/// Catches signals from now on; call before anything that must not be cut short.
pub fn serve(events: Sender<Event>) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                let event = match signal {
                    SIGHUP => Event::Hangup,
                    SIGINT => Event::Stop("SIGINT"),
                    _ => Event::Stop("SIGTERM"),
                };
                if events.send(event).is_err() {
                    break;
                }
            }
        })?;
    Ok(())
}
