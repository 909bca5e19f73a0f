//! The counters of rules, kept by name across reloads and restarts of the scheduler.
//!
//! The kernel program counts by rule number, in two banks by the parity of the epoch: a thread
//! that still runs under the previous policy is charged to that policy's rule, not to whatever has
//! its number now. Here numbers become names, so that a rule that keeps its name keeps its counts.

use std::collections::HashMap;
use std::io;

/// Counters of one rule, summed over CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuleCounters {
    /// Classifications that chose it.
    pub matches: u64,
    /// CPU time of its threads.
    pub cpu_ns: u64,
    /// Of the kernel's monotonic clock; 0: never.
    pub last_match_ns: u64,
}

impl RuleCounters {
    /// Adds another CPU's, bank's or policy's.
    pub fn add(&mut self, other: RuleCounters) {
        self.matches += other.matches;
        self.cpu_ns += other.cpu_ns;
        self.last_match_ns = self.last_match_ns.max(other.last_match_ns);
    }

    fn is_zero(&self) -> bool {
        *self == RuleCounters::default()
    }
}

/// Where the counters of rules live; the kernel's maps, or a test's.
pub trait RuleBanks {
    /// The counters of a slot of one bank.
    fn read(&self, bank: usize, slot: usize) -> io::Result<RuleCounters>;
    /// Sets them to zero.
    fn clear(&self, bank: usize, slot: usize) -> io::Result<()>;
}

/// The counters of rules by name, across policies: a rule that keeps its name keeps its counts.
#[derive(Debug, Default)]
pub struct RuleAccounts {
    /// Of policies whose bank was given to another one.
    closed: HashMap<String, RuleCounters>,
    /// Names of the rules whose counters are in each bank, in slot order from slot 1.
    names: [Vec<String>; 2],
}

impl RuleAccounts {
    /// Prepares the bank of `epoch` for a policy with these rules; call before it is published.
    pub fn open(
        &mut self,
        banks: &dyn RuleBanks,
        epoch: u32,
        names: Vec<String>,
    ) -> io::Result<()> {
        let bank = epoch as usize & 1;
        let old = std::mem::take(&mut self.names[bank]);
        // Slot 0, the default pool, has no name and no account, but must be cleared.
        for slot in 0..=old.len().max(names.len()) {
            let counters = banks.read(bank, slot)?;
            if counters.is_zero() {
                continue;
            }
            if let Some(name) = slot.checked_sub(1).and_then(|index| old.get(index)) {
                self.closed.entry(name.clone()).or_default().add(counters);
            }
            banks.clear(bank, slot)?;
        }
        self.names[bank] = names;
        // Names that no policy has any more would pile up in a daemon that runs for years.
        self.closed
            .retain(|name, _| self.names.iter().any(|names| names.contains(name)));
        Ok(())
    }

    /// A scheduler with fresh counters replaces the one whose counters are in `banks`.
    pub fn close_all(&mut self, banks: &dyn RuleBanks) -> io::Result<()> {
        for bank in 0..2 {
            for (index, name) in std::mem::take(&mut self.names[bank])
                .into_iter()
                .enumerate()
            {
                self.closed
                    .entry(name)
                    .or_default()
                    .add(banks.read(bank, index + 1)?);
            }
        }
        Ok(())
    }

    /// The counters of the rules of the policy in force, in order.
    pub fn read(&self, banks: &dyn RuleBanks, epoch: u32) -> io::Result<Vec<RuleCounters>> {
        let bank = epoch as usize & 1;
        let previous: HashMap<&str, usize> = self.names[bank ^ 1]
            .iter()
            .enumerate()
            .map(|(index, name)| (name.as_str(), index + 1))
            .collect();
        let one = |(index, name): (usize, &String)| {
            let mut sum = banks.read(bank, index + 1)?;
            if let Some(slot) = previous.get(name.as_str()) {
                sum.add(banks.read(bank ^ 1, *slot)?);
            }
            sum.add(self.closed.get(name).copied().unwrap_or_default());
            Ok(sum)
        };
        self.names[bank].iter().enumerate().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Banks in memory.
    #[derive(Default)]
    struct Fake(RefCell<HashMap<(usize, usize), RuleCounters>>);

    impl Fake {
        fn count(&self, epoch: u32, slot: usize, matches: u64) {
            let mut map = self.0.borrow_mut();
            map.entry((epoch as usize & 1, slot)).or_default().matches += matches;
        }
    }

    impl RuleBanks for Fake {
        fn read(&self, bank: usize, slot: usize) -> io::Result<RuleCounters> {
            Ok(self
                .0
                .borrow()
                .get(&(bank, slot))
                .copied()
                .unwrap_or_default())
        }

        fn clear(&self, bank: usize, slot: usize) -> io::Result<()> {
            self.0.borrow_mut().remove(&(bank, slot));
            Ok(())
        }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn matches(accounts: &RuleAccounts, banks: &Fake, epoch: u32) -> Vec<u64> {
        accounts
            .read(banks, epoch)
            .expect("readable")
            .iter()
            .map(|counters| counters.matches)
            .collect()
    }

    #[test]
    fn a_rule_keeps_its_counts_by_name_across_reloads() {
        let banks = Fake::default();
        let mut accounts = RuleAccounts::default();
        accounts
            .open(&banks, 1, names(&["a", "b"]))
            .expect("opened");
        banks.count(1, 1, 10);
        banks.count(1, 2, 20);
        accounts
            .open(&banks, 2, names(&["new", "b"]))
            .expect("opened");
        banks.count(2, 2, 5);
        // Threads that still run under the old policy are charged there.
        banks.count(1, 2, 1);
        assert_eq!(matches(&accounts, &banks, 2), [0, 26]);
        accounts.open(&banks, 3, names(&["b"])).expect("opened");
        assert_eq!(matches(&accounts, &banks, 3), [26]);
        accounts
            .open(&banks, 4, names(&["b", "a"]))
            .expect("opened");
        assert_eq!(matches(&accounts, &banks, 4), [26, 0]);
    }

    #[test]
    fn a_bank_is_clean_before_it_is_used_again() {
        let banks = Fake::default();
        let mut accounts = RuleAccounts::default();
        accounts
            .open(&banks, 1, names(&["a", "b", "c"]))
            .expect("opened");
        (0..4).for_each(|slot| banks.count(1, slot, 7));
        accounts.open(&banks, 2, names(&["x"])).expect("opened");
        accounts.open(&banks, 3, names(&["x"])).expect("opened");
        assert!((0..4).all(|slot| banks.read(1, slot).expect("readable").is_zero()));
    }

    #[test]
    fn a_new_scheduler_goes_on_counting_where_the_old_one_ended() {
        let (old, new) = (Fake::default(), Fake::default());
        let mut accounts = RuleAccounts::default();
        accounts.open(&old, 1, names(&["a"])).expect("opened");
        old.count(1, 1, 4);
        accounts.close_all(&old).expect("closed");
        accounts.open(&new, 2, names(&["a"])).expect("opened");
        new.count(2, 1, 3);
        assert_eq!(matches(&accounts, &new, 2), [7]);
    }
}
