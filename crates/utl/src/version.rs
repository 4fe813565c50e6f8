//! `version`: of this program; and with `--data-dir`, what a dir is at, what it needs, and who may start on it.

use std::{path::PathBuf, time::Duration};

use cli::Table;
use serde::Serialize;
use storage::schema::version::Found;

use crate::{
    failure::Failure,
    print::{self, Format},
    survey::{self, Need, RELEASES, Survey, may_start},
};

/// Prints the version of this program, or the one a data dir is at
#[derive(clap::Args)]
#[command(after_help = "Example: lockgateutl version --data-dir default.etcd")]
pub(crate) struct VersionArgs {
    /// The data dir to look at; no server may run on it
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where its log is, if not in the data dir
    #[arg(long, value_name = "DIR", requires = "data_dir")]
    wal_dir: Option<PathBuf>,
    #[arg(hide = true)]
    args: Vec<String>,
}

pub(crate) fn run(
    args: &VersionArgs,
    program: &str,
    format: &str,
    lock_timeout: Option<Duration>,
) -> Result<(), Failure> {
    let Some(data_dir) = &args.data_dir else { return print::print(of_program(program).as_bytes()) };
    let format = Format::parse(format)?;
    let survey = Survey::look(&survey::named(data_dir, args.wal_dir.as_ref()), lock_timeout)?;
    let told = Told::of(&survey);
    let text = match format {
        Format::Json => serde_json::to_string(&told).map_err(Failure::error)? + "\n",
        Format::Table => {
            let (header, row) = told.rows().into_iter().unzip();
            Table { header, rows: vec![row] }.render()
        }
        Format::Simple => told.rows().iter().map(|(name, value)| format!("{name:<22}{value}\n")).collect(),
        Format::Fields => told.rows().iter().map(|(name, value)| format!("{name:?} : {value}\n")).collect(),
        Format::Protobuf => return Err(Failure::bad_feature("protobuf not supported as output format")),
    };
    print::print(text.as_bytes())
}

fn of_program(program: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let api = version.rsplit_once('.').map_or(version, |parts| parts.0);
    format!("{program} version: {version}\nAPI version: {api}\n")
}

/// What is printed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    /// Empty where the file has none, as before 3.6.
    storage_version: String,
    at_version: String,
    cluster_version: String,
    /// The target, if a job is on.
    downgrade: Option<String>,
    authentication: bool,
    cluster_features: Vec<String>,
    newer_keys: Vec<String>,
    applied_index: u64,
    applied_term: u64,
    snapshot_index: u64,
    commit_index: u64,
    last_index: u64,
    newest_entry: Option<Newest>,
    unknown_fields: Vec<Odd>,
    v2_requests: Vec<Odd>,
    needs: String,
    starts: Vec<Starts>,
}

#[derive(Serialize)]
struct Newest {
    version: String,
    index: u64,
}

/// An entry that asks for something special.
#[derive(Serialize)]
struct Odd {
    index: u64,
    what: String,
}

#[derive(Serialize)]
struct Starts {
    version: String,
    /// Why not; none if it may.
    refused: Option<String>,
}

impl Told {
    fn of(survey: &Survey) -> Told {
        let log = &survey.log;
        let text = |version: Option<storage::Version>| version.map(|v| v.to_string()).unwrap_or_default();
        let job = survey.cluster.downgrade();
        let odd = |pick: fn(&Need) -> Option<String>| {
            let found = log.needed.iter().filter_map(|n| Some(Odd { index: n.index, what: pick(&n.need)? }));
            found.collect()
        };
        let starts = RELEASES
            .iter()
            .map(|release| Starts { version: release.to_string(), refused: may_start(survey, *release).err() });
        Told {
            storage_version: survey.storage.map(|v| v.stored()).unwrap_or_default(),
            at_version: match survey.found {
                Found::At(version) => version.to_string(),
                Found::New => "new: nothing was applied yet".into(),
                Found::Undecided => "undecided: no leader has set a version yet".into(),
                Found::BeforeTerms => "before 3.5".into(),
            },
            cluster_version: text(survey.cluster.version()),
            downgrade: job.enabled.then(|| job.target.clone()),
            authentication: survey.authenticates,
            cluster_features: survey.features.clone(),
            newer_keys: survey.newer_keys.clone(),
            applied_index: survey.applied.0,
            applied_term: survey.applied.1,
            snapshot_index: log.at.index(),
            commit_index: survey.commit(),
            last_index: log.last,
            newest_entry: log.newest.map(|(version, index)| Newest { version: version.to_string(), index }),
            unknown_fields: odd(|need| match need {
                Need::Unknown(path) => Some(path.clone()),
                Need::Unreadable(why) => Some(why.clone()),
                Need::Version(_) | Need::V2 { .. } => None,
            }),
            v2_requests: odd(|need| match need {
                Need::V2 { what, .. } => Some(what.clone()),
                _ => None,
            }),
            needs: survey.needs().to_string(),
            starts: starts.collect(),
        }
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let or_none = |text: &str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
        let list = |words: &[String]| or_none(&words.join(", "));
        let odd = |found: &[Odd]| list(&found.iter().map(|o| format!("{} ({})", o.index, o.what)).collect::<Vec<_>>());
        let newest = self.newest_entry.as_ref().map(|newest| format!("{} (index {})", newest.version, newest.index));
        let starts = self.starts.iter().map(|s| match &s.refused {
            None => s.version.clone(),
            Some(why) => format!("not {}: {why}", s.version),
        });
        vec![
            ("at version", self.at_version.clone()),
            ("storage version", or_none(&self.storage_version)),
            ("cluster version", or_none(&self.cluster_version)),
            ("downgrade job", self.downgrade.as_ref().map_or("none".into(), |target| format!("to {target}"))),
            ("cluster features on", list(&self.cluster_features)),
            ("newer keys", list(&self.newer_keys)),
            ("authentication", if self.authentication { "on" } else { "off" }.into()),
            ("applied", format!("index {}, term {}", self.applied_index, self.applied_term)),
            (
                "log",
                format!(
                    "snapshot at {}, committed to {}, ends at {}",
                    self.snapshot_index, self.commit_index, self.last_index
                ),
            ),
            ("newest entry", newest.unwrap_or_else(|| "none".into())),
            ("unknown fields", odd(&self.unknown_fields)),
            ("v2 requests", odd(&self.v2_requests)),
            ("needs at least", self.needs.clone()),
            ("may be started by", starts.collect::<Vec<_>>().join("; ")),
        ]
    }
}
