//! What operators write: feature gates, command lines, environments, config files, records of releases.

use std::{collections::BTreeSet, sync::LazyLock};

use featuregate::{Level, Release, Settings};
use fuzz::{damage, pieces};
use membership::features;
use server::config::{Config, Parsed, help_text};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn gates(flag: &str) {
    if let Ok(settings) = flag.parse::<Settings>() {
        let shown = settings.to_string();
        assert_eq!(shown.parse::<Settings>().as_ref(), Ok(&settings), "{shown:?}");
    }
    let registry = features::registry().expect("table");
    for level in [Level::Server, Level::Cluster] {
        if let Err(errors) = registry.parse(level, features::VERSION, flag) {
            let _ = errors.0.iter().map(|e| (e.to_string(), e.hint())).collect::<Vec<_>>();
        }
    }
}

#[test]
fn gates_of_any_text() {
    bolero::check!().with_iterations(4000).with_max_len(256).for_each(|input: &[u8]| gates(&text(input)));
}

#[test]
fn damaged_gates() {
    const SEED: &[u8] = b"AllAlpha=true,LeaseCheckpoint=false, CompactHashCheck = 1,FastLeaseKeepAlive=T,AllBeta=F";
    bolero::check!().with_iterations(4000).with_max_len(48).for_each(|input: &[u8]| gates(&text(&damage(SEED, input))));
}

#[test]
fn damaged_release() {
    const SEED: &str = include_str!("../../membership/testdata/features/etcd-3.7.3.txt");
    bolero::check!().with_iterations(4000).with_max_len(48).for_each(|input: &[u8]| {
        let _ = text(&damage(SEED.as_bytes(), input)).parse::<Release>();
    });
}

/// Every flag that the help shows.
static FLAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let help = help_text();
    let words = help.split_whitespace().filter(|word| word.starts_with("--"));
    let names: BTreeSet<_> = words.map(|w| w.trim_end_matches(|c: char| !c.is_alphanumeric()).to_owned()).collect();
    names.into_iter().collect()
});

const VALUES: [&str; 12] = [
    "",
    "0",
    "-1",
    "true",
    "18446744073709551616",
    "10ms",
    "1h0.5m",
    "http://127.0.0.1:1",
    "default=http://[::1]:2380",
    "/nonexistent",
    "new",
    "a,b,,c",
];

fn run(args: &[String], env: &[(String, String)]) {
    match Config::from_args(args, env) {
        Ok(Parsed::Run(config)) => {
            let _ = (config.verify_bootstrap(), config.election_ticks(), config.request_timeout());
            gates(&config.feature_gates);
        }
        Ok(_) => {}
        Err(error) => assert!(!error.to_string().is_empty() && error.exit_code() != 0),
    }
}

#[test]
fn command_line() {
    assert!(FLAGS.len() > 50, "{FLAGS:?}");
    bolero::check!().with_iterations(3000).with_max_len(256).for_each(|input: &[u8]| {
        let (mut args, mut env) = (Vec::new(), Vec::new());
        for piece in pieces(input) {
            let [flag, kind, rest @ ..] = piece else { continue };
            let name = &FLAGS[*flag as usize % FLAGS.len()];
            if name == "--config-file" {
                continue;
            }
            let value = VALUES.get(*kind as usize % 16).map_or_else(|| text(rest), ToString::to_string);
            match kind / 16 % 4 {
                0 => args.push(format!("{name}={value}")),
                1 => args.extend([name.clone(), value]),
                2 => args.push(text(rest)),
                _ => env.push((format!("ETCD_{}", name[2..].replace('-', "_").to_uppercase()), value)),
            }
        }
        args.retain(|arg| !arg.contains("config-file"));
        run(&args, &env);
    });
}

#[test]
fn config_file() {
    const SEED: &str = "name: m1\ndata-dir: /d\nquota-backend-bytes: 5\nlisten-client-urls: http://127.0.0.1:1,http://[::1]:2\n\
        initial-cluster: m1=http://localhost:2380\nheartbeat-interval: 100\nfeature-gates: A=true\nlog-outputs: [stderr, 'x']\n\
        client-transport-security: {cert-file: a, client-cert-auth: false}\nauto-compaction-retention: \"1h\"\nsnapshot-count: 1e4\n";
    let dir = harness::tempdir();
    let path = dir.path().join("c.yml");
    let args = [format!("--config-file={}", path.display())];
    bolero::check!().with_iterations(3000).with_max_len(512).for_each(|input: &[u8]| {
        let Some((&which, script)) = input.split_first() else { return };
        let bytes =
            if which % 4 == 0 { script.to_vec() } else { damage(SEED.as_bytes(), &script[..script.len().min(36)]) };
        std::fs::write(&path, bytes).expect("write");
        run(&args, &[]);
    });
}
