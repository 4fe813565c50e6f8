//! `process_*`, and etcd's `os_fd_*`, read from /proc when asked. Of systems without it nothing is told.

use std::fs;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, Gauge, Metric, MetricFamily, MetricType};
use rustix::param::{clock_ticks_per_second, page_size};

/// Name, whether it is a counter, help, and how to read it.
type Row = (&'static str, bool, &'static str, fn(&Sample) -> Option<f64>);

const ROWS: &[Row] = &[
    ("os_fd_limit", false, "Limit of open file descriptors.", |s| s.max_fds),
    ("os_fd_used", false, "Open file descriptors.", |s| s.open_fds),
    ("process_cpu_seconds_total", true, "CPU time of the process.", |s| s.cpu_seconds),
    ("process_max_fds", false, "Limit of open file descriptors.", |s| s.max_fds),
    ("process_network_receive_bytes_total", true, "Bytes received by the network namespace.", |s| s.received),
    ("process_network_transmit_bytes_total", true, "Bytes sent by the network namespace.", |s| s.sent),
    ("process_open_fds", false, "Open file descriptors.", |s| s.open_fds),
    ("process_resident_memory_bytes", false, "Memory held in RAM.", |s| s.resident),
    ("process_start_time_seconds", false, "Unix time at which the process began.", |s| s.start_time),
    ("process_virtual_memory_bytes", false, "Size of the address space.", |s| s.virtual_memory),
    ("process_virtual_memory_max_bytes", false, "Limit of the address space; -1 is none.", |s| s.max_virtual),
];

/// A collector of those metrics whose names are wanted.
pub struct Process {
    rows: Vec<(&'static Row, Desc)>,
}

impl Process {
    pub fn new(wanted: impl Fn(&str) -> bool) -> Process {
        let desc = |row: &Row| Desc::new(row.0.to_owned(), row.2.to_owned(), Vec::new(), Default::default());
        let rows = ROWS.iter().filter(|row| wanted(row.0));
        Process { rows: rows.filter_map(|row| Some((row, desc(row).ok()?))).collect() }
    }

    /// Each name, and whether it is a counter.
    pub fn names(&self) -> impl Iterator<Item = (&'static str, bool)> + '_ {
        self.rows.iter().map(|((name, counter, ..), _)| (*name, *counter))
    }
}

impl Collector for Process {
    fn desc(&self) -> Vec<&Desc> {
        self.rows.iter().map(|(_, desc)| desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let sample = Sample::take();
        self.rows.iter().filter_map(|(row, _)| Some(family(row, (row.3)(&sample)?))).collect()
    }
}

fn family((name, counter, help, _): &Row, value: f64) -> MetricFamily {
    let mut metric = Metric::default();
    let kind = if *counter {
        let mut counter = Counter::default();
        counter.set_value(value);
        metric.set_counter(counter);
        MetricType::COUNTER
    } else {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        metric.set_gauge(gauge);
        MetricType::GAUGE
    };
    let mut family = MetricFamily::default();
    family.set_name((*name).to_owned());
    family.set_help((*help).to_owned());
    family.set_field_type(kind);
    family.set_metric(vec![metric]);
    family
}

/// What /proc says; `None` where it says nothing, as on other systems.
#[derive(Debug, Default)]
struct Sample {
    cpu_seconds: Option<f64>,
    resident: Option<f64>,
    virtual_memory: Option<f64>,
    max_virtual: Option<f64>,
    start_time: Option<f64>,
    open_fds: Option<f64>,
    max_fds: Option<f64>,
    received: Option<f64>,
    sent: Option<f64>,
}

impl Sample {
    fn take() -> Sample {
        let mut sample = Sample::default();
        if let Ok(stat) = fs::read_to_string("/proc/self/stat") {
            sample.read_stat(&stat);
        }
        if let Ok(dir) = fs::read_dir("/proc/self/fd") {
            // The directory that is being read is one of them.
            sample.open_fds = Some(dir.count().saturating_sub(1) as f64);
        }
        if let Ok(limits) = fs::read_to_string("/proc/self/limits") {
            sample.max_fds = limit(&limits, "Max open files");
            sample.max_virtual = limit(&limits, "Max address space");
        }
        if let Ok(netstat) = fs::read_to_string("/proc/self/net/netstat") {
            sample.received = ip_ext(&netstat, "InOctets");
            sample.sent = ip_ext(&netstat, "OutOctets");
        }
        sample
    }

    /// Fields of proc(5) are counted after the command's closing parenthesis, which is field 2.
    fn read_stat(&mut self, stat: &str) {
        let Some((_, rest)) = stat.rsplit_once(") ") else { return };
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).and_then(|text| text.parse::<f64>().ok());
        let ticks = clock_ticks_per_second() as f64;
        if let (Some(user), Some(system)) = (field(14), field(15)) {
            self.cpu_seconds = Some((user + system) / ticks);
        }
        if let (Some(started), Some(boot)) = (field(22), boot_time()) {
            self.start_time = Some(boot + started / ticks);
        }
        self.virtual_memory = field(23);
        self.resident = field(24).map(|pages| pages * page_size() as f64);
    }
}

fn boot_time() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// The soft limit; -1 if there is none.
fn limit(limits: &str, name: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_ascii_whitespace().next()? {
        "unlimited" => Some(-1.0),
        number => number.parse().ok(),
    }
}

/// A number of the `IpExt:` table: one line of names, one of numbers.
fn ip_ext(netstat: &str, name: &str) -> Option<f64> {
    let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("IpExt: "));
    let column = lines.next()?.split(' ').position(|column| column == name)?;
    lines.next()?.split(' ').nth(column)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_proc() {
        let mut sample = Sample::default();
        sample.read_stat("7 (a) b) R 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 3 0 100 4096000 250 18446744073709551615 1");
        assert_eq!(sample.virtual_memory, Some(4_096_000.0));
        assert_eq!(sample.resident, Some(page_size() as f64 * 250.0));
        assert_eq!(sample.cpu_seconds, Some(200.0 / clock_ticks_per_second() as f64));
        let limits = "Limit   Soft   Hard\nMax open files            1024   4096   files\nMax address space  unlimited unlimited bytes\n";
        assert_eq!(limit(limits, "Max open files"), Some(1024.0));
        assert_eq!(limit(limits, "Max address space"), Some(-1.0));
        assert_eq!(ip_ext("TcpExt: A\nTcpExt: 1\nIpExt: A InOctets\nIpExt: 1 77\n", "InOctets"), Some(77.0));
        Sample::default().read_stat("garbage");
    }

    #[test]
    fn this_process_is_told_under_the_wanted_names() {
        let process = Process::new(|name| name.starts_with("process_"));
        assert!(process.names().all(|(name, _)| !name.starts_with("os_")));
        assert_eq!(process.desc().len(), process.names().count());
        let families = process.collect();
        let resident = families.iter().find(|family| family.name() == "process_resident_memory_bytes");
        assert!(resident.expect("a size").get_metric()[0].get_gauge().get_value() > 4096.0);
    }
}
