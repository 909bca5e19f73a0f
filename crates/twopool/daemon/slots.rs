//! Who may be connected to the control socket at once.
//!
//! Anybody may ask the daemon, so anybody may also connect and say nothing. Slots are shared so
//! that this hurts nobody else: root always finds one, one user never holds more than a few, and
//! when there is none left the client that has been idle for longest is dropped for a new one.
//!
//! Pure: ids and instants in, decisions out; closing the connections is the caller's.
//!
//! Invariant: never more than `MAX_CLIENTS` hold a slot, and never more than `MAX_OTHERS` of them
//! are not root.

use std::time::Instant;

/// Connections served at once.
pub const MAX_CLIENTS: usize = 16;
/// Of these, what others than root may hold; the rest is root's alone.
pub const MAX_OTHERS: usize = 12;
/// Of these, what one user may hold.
pub const MAX_PER_USER: usize = 4;

/// A connected client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Client {
    id: u64,
    /// `None`: root, or whoever runs the daemon.
    user: Option<u32>,
    /// Since when it owes us something: a request, or the reading of an answer. `None`: it waits
    /// for us.
    idle_since: Option<Instant>,
}

/// Who holds a slot.
#[derive(Debug, Default)]
pub struct Slots {
    clients: Vec<Client>,
    next_id: u64,
}

/// A new client has a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admitted {
    /// The new client.
    pub id: u64,
    /// Lost its slot for it; its connection must be closed.
    pub dropped: Option<u64>,
}

impl Slots {
    /// A new client of a user (`None`: root). Nothing: every slot that it could have is held by
    /// clients who wait for the daemon.
    pub fn admit(&mut self, user: Option<u32>, now: Instant) -> Option<Admitted> {
        let dropped = self.make_room(user)?;
        let id = self.next_id;
        self.next_id += 1;
        self.clients.push(Client {
            id,
            user,
            idle_since: Some(now),
        });
        Some(Admitted { id, dropped })
    }

    /// A client waits for the daemon (`None`), or the daemon for it since an instant.
    pub fn set_idle(&mut self, id: u64, since: Option<Instant>) {
        if let Some(client) = self.clients.iter_mut().find(|client| client.id == id) {
            client.idle_since = since;
        }
    }

    /// A client is gone; one that was dropped is gone already.
    pub fn release(&mut self, id: u64) {
        self.clients.retain(|client| client.id != id);
    }

    /// Whom to drop for a new client, if anybody; nothing: there is no room to be made.
    fn make_room(&mut self, user: Option<u32>) -> Option<Option<u64>> {
        let held = |of: &dyn Fn(&Client) -> bool| self.clients.iter().filter(|c| of(c)).count();
        let others = held(&|c| c.user.is_some());
        let candidates: &dyn Fn(&Client) -> bool = match user {
            Some(_) if held(&|c| c.user == user) >= MAX_PER_USER => &|c| c.user == user,
            Some(_) if others >= MAX_OTHERS => &|c| c.user.is_some(),
            _ if self.clients.len() < MAX_CLIENTS => return Some(None),
            // Others hold none of root's own slots: clients of root take this many only together.
            _ if others > 0 => &|c| c.user.is_some(),
            _ => &|c| c.user.is_none(),
        };
        let idle = self.clients.iter().filter(|c| candidates(c));
        let idle = idle.filter_map(|c| Some((c.idle_since?, c.id)));
        let (_, dropped) = idle.min()?;
        self.release(dropped);
        Some(Some(dropped))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Admits clients one second after the other; their ids, or `None` where there was no slot.
    struct Bench {
        slots: Slots,
        now: Instant,
    }

    impl Bench {
        fn new() -> Self {
            Self {
                slots: Slots::default(),
                now: Instant::now(),
            }
        }

        fn admit(&mut self, user: Option<u32>) -> Option<Admitted> {
            self.now += Duration::from_secs(1);
            self.slots.admit(user, self.now)
        }

        fn busy(&mut self, user: Option<u32>) {
            let admitted = self.admit(user).expect("a slot");
            self.slots.set_idle(admitted.id, None);
        }
    }

    #[test]
    fn root_finds_a_slot_whatever_others_hold() {
        let mut bench = Bench::new();
        for user in 0..1_000 {
            bench.admit(Some(user % 7 + 1));
        }
        for _ in 0..MAX_CLIENTS - MAX_OTHERS {
            assert_eq!(bench.admit(None).expect("a slot").dropped, None);
        }
        // Beyond its own slots it takes those of idle others, the oldest first.
        let oldest = bench.slots.clients[0].id;
        assert_eq!(bench.admit(None).expect("a slot").dropped, Some(oldest));
    }

    #[test]
    fn others_who_wait_for_the_daemon_leave_roots_slots_alone() {
        let mut bench = Bench::new();
        (0..MAX_OTHERS as u32).for_each(|user| bench.busy(Some(user + 1)));
        assert_eq!(bench.admit(Some(99)), None);
        assert_eq!(bench.admit(None).expect("a slot").dropped, None);
    }

    #[test]
    fn a_user_who_takes_too_many_loses_the_own_oldest() {
        let mut bench = Bench::new();
        let quiet = bench.admit(Some(7)).expect("a slot").id;
        let first = bench.admit(Some(1)).expect("a slot").id;
        for _ in 1..MAX_PER_USER {
            bench.admit(Some(1));
        }
        let next = bench.admit(Some(1)).expect("a slot");
        assert_eq!(next.dropped, Some(first));
        assert!(bench.slots.clients.iter().any(|client| client.id == quiet));
        let held = bench.slots.clients.iter().filter(|c| c.user == Some(1));
        assert_eq!(held.count(), MAX_PER_USER);
    }

    #[test]
    fn whoever_waits_for_the_daemon_is_not_dropped() {
        let mut bench = Bench::new();
        (0..MAX_PER_USER).for_each(|_| bench.busy(Some(1)));
        assert_eq!(bench.admit(Some(1)), None);
    }

    #[test]
    fn a_slot_that_is_given_back_is_free() {
        let mut bench = Bench::new();
        for _ in 0..10 * MAX_CLIENTS {
            let admitted = bench.admit(None).expect("a slot");
            assert_eq!(admitted.dropped, None);
            bench.slots.release(admitted.id);
        }
    }
}
