//! How urgent the threads of the daemon are.
//!
//! The daemon is on no scheduling path, but what it does rarely is urgent: after an ejection a host
//! that is busy enough to have needed its policy must get it back, and loading takes seconds of CPU
//! time. So the daemon runs at nice -20, under the kernel's own scheduler and in its pool under ours,
//! and steps back for what anybody may ask for. Not for proofs: the next reload waits for them.
//!
//! Nice values are of the calling thread: Linux keeps them by thread, and a new thread has its
//! parent's. Where the kernel groups threads by session (autogroup), they count inside the group only,
//! and the group has one of its own. Where cgroups share out CPU time, all of it counts inside the
//! daemon's cgroup, whose weight is the supervisor's business.

use std::fs;
use std::io;

use nix::unistd::{getpid, getsid};
use rustix::process::{getpriority_process, setpriority_process};

const URGENT: i32 = -20;
const USUAL: i32 = 0;

/// Makes this thread, and those that it starts, urgent. A nice value that somebody chose stays.
///
/// # Errors
/// It may not.
pub fn raise() -> io::Result<()> {
    if getpriority_process(None)? == USUAL {
        setpriority_process(None, URGENT)?;
        // Under a supervisor the session is the daemon's own; that of a shell is not ours to raise, nor
        // one of outside this PID namespace, which the kernel calls 0.
        if getsid(None)? == getpid() {
            raise_autogroup()?;
        }
    }
    Ok(())
}

fn raise_autogroup() -> io::Result<()> {
    match fs::write("/proc/self/autogroup", URGENT.to_string()) {
        // This kernel does not group by session.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        written => written,
    }
}

/// Makes this thread, and those that it starts, as urgent as everybody's; never more than it is.
pub fn step_back() {
    if getpriority_process(None).is_ok_and(|nice| nice < USUAL) {
        // Being less urgent is always allowed.
        let _ = setpriority_process(None, USUAL);
    }
}

/// Does something that can wait at the priority of everybody's work.
pub fn at_leisure<T>(work: impl FnOnce() -> T) -> T {
    let before = getpriority_process(None);
    step_back();
    let done = work();
    if let Ok(nice) = before {
        // Whoever could rise once can do it again.
        let _ = setpriority_process(None, nice);
    }
    done
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn nice() -> i32 {
        getpriority_process(None).expect("our own")
    }

    /// In a thread of its own, whose nice value is nobody else's.
    #[test]
    fn threads_are_urgent_step_back_and_are_urgent_again() {
        let seen = thread::spawn(|| {
            let Ok(()) = setpriority_process(None, USUAL)
                .map_err(Into::into)
                .and_then(|()| raise())
            else {
                eprintln!("skipped: this user may not raise priorities");
                return None;
            };
            let leisurely = at_leisure(nice);
            let child = thread::spawn(nice).join().expect("no panic");
            Some((leisurely, nice(), child))
        });
        if let Some(seen) = seen.join().expect("no panic") {
            assert_eq!(seen, (USUAL, URGENT, URGENT));
        }
    }

    #[test]
    fn a_nice_value_that_somebody_chose_stays() {
        let seen = thread::spawn(|| {
            setpriority_process(None, 5).expect("less urgent");
            raise().expect("nothing to do");
            (nice(), at_leisure(nice), nice())
        });
        assert_eq!(seen.join().expect("no panic"), (5, 5, 5));
    }
}
