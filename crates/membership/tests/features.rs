//! The table of features against the records of past releases, the record of the next one, and the page for users.
//! `UPDATE_GOLDENFILES=1` rewrites the last two; the diff is a change of what operators can rely on.

use std::{
    fs,
    path::{Path, PathBuf},
};

use featuregate::{Level, Release, Row, Rule, Violation, check_lifecycle};
use membership::features::{VERSION, registry, release};
use test_case::test_case;

/// Released by nobody yet: what the next release will be compared by.
const NEXT: &str = "unreleased.txt";

fn path(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(of)
}

fn now() -> Release {
    release().expect("the table has no fault")
}

/// The records of all releases, oldest first.
fn released() -> Vec<Release> {
    let files = fs::read_dir(path("testdata/features")).expect("records").map(|entry| entry.expect("an entry").path());
    let files = files.filter(|file| !file.ends_with(NEXT));
    let read = |file: PathBuf| -> Release {
        let text = fs::read_to_string(&file).expect("a record");
        text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    };
    let mut records: Vec<Release> = files.map(read).collect();
    records.sort_by_key(|record| (record.version, record.patch));
    records
}

fn lines(violations: &[Violation]) -> String {
    violations.iter().map(|violation| format!("\n{violation}")).collect()
}

#[test]
fn every_release_keeps_the_promises_of_the_one_before() {
    let mut records = released();
    assert!(!records.is_empty());
    records.push(now());
    for pair in records.windows(2) {
        let violations = check_lifecycle(&pair[0], &pair[1]);
        assert!(violations.is_empty(), "{}.{}:{}", pair[1].version, pair[1].patch, lines(&violations));
    }
}

/// Before a table is released nothing forbids to change it, but nobody may do so unawares.
#[test]
fn the_next_release_is_on_record() {
    golden(&path("testdata/features").join(NEXT), &now().to_string());
}

#[test]
fn the_page_for_users_has_the_tables() {
    let registry = registry().expect("the table has no fault");
    let page = path("../../docs/feature-gates.md");
    let mut text = fs::read_to_string(&page).expect("the page");
    for level in [Level::Cluster, Level::Server] {
        text = with_table(&text, level, &registry.markdown_of(level, VERSION));
    }
    golden(&page, &text);
}

/// The page with what stands between the two marks of a level replaced.
fn with_table(page: &str, level: Level, table: &str) -> String {
    let (begin, end) = (format!("<!-- {level}-level features: made from the table -->\n"), "<!-- end -->");
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("the page lacks {begin}"));
    let (_, after) = rest.split_once(end).unwrap_or_else(|| panic!("the page lacks {end} after {begin}"));
    format!("{before}{begin}{table}{end}{after}")
}

fn golden(path: &Path, actual: &str) {
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        fs::write(path, actual).expect("written");
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    let first = expected.lines().zip(actual.lines()).find(|(expected, actual)| expected != actual);
    assert_eq!(expected, actual, "{} (UPDATE_GOLDENFILES=1 rewrites it); first difference {first:?}", path.display());
}

/// A wrong change of a cluster feature, made to the table of now, and the version it is released as.
type Mutation = fn(&mut Release);

fn feature(release: &mut Release) -> &mut Row {
    release.features.get_mut("AtomicIncrement").expect("a feature of the table")
}

fn change_level(release: &mut Release) {
    feature(release).level = Level::Server;
}

fn rename(release: &mut Release) {
    let row = release.features.remove("AtomicIncrement").expect("a feature of the table");
    release.features.insert("Increment".to_owned(), row);
}

fn lock(release: &mut Release) {
    feature(release).specs[0].locked = true;
}

fn turn_on(release: &mut Release) {
    feature(release).specs[0].default = true;
}

fn make_beta(release: &mut Release) {
    feature(release).specs[0].stage = featuregate::Stage::Beta;
}

fn remove_beta(release: &mut Release) {
    release.features.remove("AtomicIncrement");
    release.retired.insert("AtomicIncrement".to_owned());
}

fn retire_and_keep(release: &mut Release) {
    release.retired.insert("AtomicIncrement".to_owned());
}

fn next_patch(mut release: Release) -> Release {
    release.patch += 1;
    release
}

fn next_minor(mut release: Release) -> Release {
    release.version.minor += 1;
    release.patch = 0;
    release
}

#[test_case(change_level => vec![Rule::LevelFixed])]
#[test_case(rename => vec![Rule::NameOnce])]
#[test_case(lock => vec![Rule::SaidStaysSaid])]
#[test_case(turn_on => vec![Rule::SaidStaysSaid])]
#[test_case(make_beta => vec![Rule::SaidStaysSaid])]
#[test_case(retire_and_keep => vec![Rule::NameOnce])]
fn a_wrong_change_of_a_released_cluster_feature_is_found(mutate: Mutation) -> Vec<Rule> {
    let found = |mut new: Release| -> Vec<Rule> {
        mutate(&mut new);
        check_lifecycle(&now(), &new).iter().map(|violation| violation.rule).collect()
    };
    let in_patch = found(next_patch(now()));
    assert_eq!(in_patch, found(next_minor(now())), "a patch and a minor release break the same promise");
    in_patch
}

#[test]
fn a_beta_cannot_leave_at_once() {
    let mut old = now();
    make_beta(&mut old);
    let mut new = next_minor(old.clone());
    remove_beta(&mut new);
    let rules: Vec<Rule> = check_lifecycle(&old, &new).iter().map(|violation| violation.rule).collect();
    assert_eq!(rules, [Rule::LeaveLocked]);
}

/// New in this release, so nothing that was said forbids it; but members without it count as off.
#[test]
fn a_cluster_feature_is_not_born_locked() {
    let old = released().pop().expect("a release before this one");
    let mut new = now();
    lock(&mut new);
    let rules: Vec<Rule> = check_lifecycle(&old, &new).iter().map(|violation| violation.rule).collect();
    assert_eq!(rules, [Rule::LockAfterMinor]);
}

/// Whatever the records allow, a change shows in the record of the next release.
#[test_case(change_level)]
#[test_case(rename)]
#[test_case(lock)]
#[test_case(turn_on)]
fn a_change_before_the_release_shows_in_its_record(mutate: Mutation) {
    let mut new = now();
    mutate(&mut new);
    assert_ne!(new.to_string(), now().to_string());
}
