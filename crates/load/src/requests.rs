//! Requests at random times, served by threads of a fixed number, beside a background load.
//!
//! Every serving thread has its own arrivals (a Poisson process) and its own service times, both drawn
//! from the seed before anything starts: two runs with one seed ask for the same work at the same
//! times. A request that arrives while its thread is busy waits for it; its latency counts from its
//! arrival. Background CPU time is measured over the window of arrivals only: in the tail after it
//! the background has the machine to itself.

use crate::clock;
use crate::place::{self, Place};
use crate::rng::Rng;
use crate::spin::{Spinner, cpu_times};
use crate::stats::{self, Latency};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// Time for all threads to be asleep before the first arrival.
const LEAD_NS: u64 = 100_000_000;

/// Distribution of service times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Service {
    /// Exponential with the given mean
    Exponential,
    /// Always the mean
    Fixed,
}

/// Arguments of `requests`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Serving threads
    #[arg(long, default_value_t = 4)]
    pub threads: usize,
    /// Their names; the last N becomes the number, from 0
    #[arg(long, default_value = "req-N", value_name = "PATTERN")]
    pub name: String,
    #[command(flatten)]
    pub place: Place,
    /// Arrivals per second and thread
    #[arg(long, default_value_t = 80.0)]
    pub rate: f64,
    /// Mean service time in microseconds of thread CPU time
    #[arg(long, default_value_t = 5000.0)]
    pub service_us: f64,
    /// Distribution of service times
    #[arg(long, value_enum, default_value = "exponential")]
    pub service: Service,
    /// Length of the window of arrivals
    #[arg(long, default_value_t = 6.0)]
    pub seconds: f64,
    /// What arrivals and service times follow from
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Background threads that never have enough
    #[arg(long, default_value_t = 0)]
    pub hogs: usize,
    /// Their names
    #[arg(long, default_value = "batch-N", value_name = "PATTERN")]
    pub hog_name: String,
    /// More arguments of `spin` for the background process
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub hog_arg: Vec<String>,
}

/// Result of `requests`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Requests served.
    pub requests: usize,
    /// Length of the window in which the CPU times below were used, in seconds.
    pub window_s: f64,
    /// From arrival to completion.
    pub latency: Latency,
    /// CPUs that the background used.
    pub background_cpus: f64,
    /// CPUs that the serving threads used.
    pub request_cpus: f64,
}

#[derive(Debug, Clone, Copy)]
struct Request {
    arrival_ns: u64,
    service_ns: u64,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    crate::print(&measure(args)?)
}

/// Serves all requests and reports.
pub fn measure(args: &Args) -> Result<Report> {
    args.place.enter()?;
    // The window's edges must be seen in time: the thread that watches them has a name like those
    // that serve, so that a policy takes it for one of them.
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name(args.name.replace('N', "ctl"))
            .spawn_scoped(scope, || watch(args))
            .context("cannot start a thread")?
            .join()
            .ok()
            .context("the watching thread panicked")?
    })
}

fn watch(args: &Args) -> Result<Report> {
    let hogs = (args.hogs > 0)
        .then(|| Spinner::start(&hog_arguments(args)))
        .transpose()?;
    let begin = clock::now_ns() + LEAD_NS;
    let window = (args.seconds * 1e9) as u64;
    let servers = Servers::start(args, begin, window)?;
    let cpu = || -> Result<(u64, u64)> {
        let background = hogs.as_ref().map_or(Ok(0), Spinner::cpu_ns)?;
        let serving: u64 = cpu_times(std::process::id(), &servers.tids)?.iter().sum();
        Ok((background, serving))
    };
    clock::sleep_until_ns(begin);
    let (from, before) = (clock::now_ns(), cpu()?);
    clock::sleep_until_ns(begin + window);
    let (to, after) = (clock::now_ns(), cpu()?);
    let latencies = servers.finish()?;
    Ok(Report {
        requests: latencies.len(),
        window_s: (to - from) as f64 / 1e9,
        latency: stats::summarise(latencies),
        background_cpus: (after.0 - before.0) as f64 / (to - from) as f64,
        request_cpus: (after.1 - before.1) as f64 / (to - from) as f64,
    })
}

struct Servers {
    tids: Vec<u32>,
    handles: Vec<std::thread::JoinHandle<Vec<u64>>>,
    /// Threads end once this is dropped: their CPU time is read while they exist.
    release: Vec<std::sync::mpsc::Sender<()>>,
}

impl Servers {
    fn start(args: &Args, begin: u64, window: u64) -> Result<Self> {
        let (tell, told) = std::sync::mpsc::channel();
        let mut servers = Self {
            tids: Vec::new(),
            handles: Vec::new(),
            release: Vec::new(),
        };
        for number in 0..args.threads {
            let schedule = schedule(args, number as u64, window);
            let tell = tell.clone();
            let (release, released) = std::sync::mpsc::channel::<()>();
            let handle = std::thread::Builder::new()
                .name(place::numbered(&args.name, number))
                .spawn(move || {
                    let tid = rustix::thread::gettid().as_raw_nonzero().get();
                    let latencies = match tell.send(tid.unsigned_abs()) {
                        Ok(()) => serve(&schedule, begin),
                        Err(_) => Vec::new(),
                    };
                    // An error is the release.
                    let _ = released.recv();
                    latencies
                })
                .context("cannot start a thread")?;
            servers.handles.push(handle);
            servers.release.push(release);
        }
        servers.tids = told.iter().take(args.threads).collect();
        Ok(servers)
    }

    /// Latencies of all requests in nanoseconds, once all are served.
    fn finish(mut self) -> Result<Vec<u64>> {
        self.release.clear();
        let mut all = Vec::new();
        for handle in self.handles.drain(..) {
            let latencies = handle.join().ok().context("a serving thread panicked")?;
            all.extend(latencies);
        }
        Ok(all)
    }
}

fn serve(schedule: &[Request], begin: u64) -> Vec<u64> {
    let mut latencies = Vec::with_capacity(schedule.len());
    for request in schedule {
        let arrival = begin + request.arrival_ns;
        clock::sleep_until_ns(arrival);
        clock::burn_ns(request.service_ns);
        latencies.push(clock::now_ns() - arrival);
    }
    latencies
}

/// All requests of one serving thread, in the order of their arrival.
fn schedule(args: &Args, thread: u64, window_ns: u64) -> Vec<Request> {
    let mut gaps = Rng::new(args.seed, 2 * thread);
    let mut services = Rng::new(args.seed, 2 * thread + 1);
    let mut requests = Vec::new();
    let mut at = 0.0;
    loop {
        at += gaps.exponential(1e9 / args.rate);
        if !at.is_finite() || at >= window_ns as f64 {
            return requests;
        }
        let mean = args.service_us * 1000.0;
        requests.push(Request {
            arrival_ns: at as u64,
            service_ns: match args.service {
                Service::Exponential => services.exponential(mean) as u64,
                Service::Fixed => mean as u64,
            },
        });
    }
}

fn hog_arguments(args: &Args) -> Vec<String> {
    let mut arguments = vec![
        "--threads".to_owned(),
        args.hogs.to_string(),
        "--name".to_owned(),
        args.hog_name.clone(),
    ];
    arguments.extend(args.hog_arg.iter().cloned());
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Wrapper {
        #[command(flatten)]
        args: Args,
    }

    fn args(text: &str) -> Args {
        Wrapper::parse_from(std::iter::once("x").chain(text.split_whitespace())).args
    }

    #[test]
    fn one_seed_gives_one_schedule() {
        let args = args("--rate 100 --service-us 2000 --seconds 20");
        let window = 20_000_000_000;
        let first = schedule(&args, 0, window);
        let again = schedule(&args, 0, window);
        let other = schedule(&args, 1, window);
        let arrivals = |s: &[Request]| s.iter().map(|r| r.arrival_ns).collect::<Vec<_>>();
        assert_eq!(arrivals(&first), arrivals(&again));
        assert_ne!(arrivals(&first), arrivals(&other));
        assert!((1800..2200).contains(&first.len()), "{}", first.len());
        let mean = first.iter().map(|r| r.service_ns).sum::<u64>() / first.len() as u64;
        assert!((1_800_000..2_200_000).contains(&mean), "{mean}");
    }

    #[test]
    fn all_requests_are_served_and_waiting_counts() {
        let args = args("--threads 1 --rate 50 --service-us 1000 --service fixed --seconds 0.3");
        let expected = schedule(&args, 0, 300_000_000).len();
        let report = measure(&args).unwrap();
        assert_eq!(report.requests, expected);
        assert!(report.latency.p50_us >= 1000.0);
    }
}
