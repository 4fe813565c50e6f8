//! Evidence that a gate works: JUnit results, of which only tests that name the gate count.

use std::collections::{BTreeMap, BTreeSet};

use roxmltree::Node;
use serde::Serialize;

use crate::canonical::digest_of_bytes;

pub const TESTS_MIN: usize = 5;
pub const RUNS_MIN: u32 = 14;
pub const PASS_PERCENT_MIN: u32 = 95;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceError {
    #[error("it is not XML: {0}")]
    NotXml(String),
    #[error("its root is <{0}>, and JUnit results have <testsuites> or <testsuite>")]
    NotJunit(String),
}

/// Runs of one test. A file is one run, which failed if the test failed anywhere in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub runs: u32,
    pub passed: u32,
}

/// Results of one gate in one profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    pub files: usize,
    /// By name.
    pub tests: BTreeMap<String, Tally>,
    pub lacks: Vec<String>,
}

/// Results of one profile.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    seen: BTreeSet<String>,
    tests: BTreeMap<String, Tally>,
}

impl Evidence {
    /// Takes one file of results. The same bytes again are the same run.
    pub fn add(&mut self, file: &str) -> Result<(), EvidenceError> {
        let results = results(file)?;
        if self.seen.insert(digest_of_bytes(file.as_bytes())) {
            for (test, passed) in results {
                let tally = self.tests.entry(test).or_default();
                tally.runs += 1;
                tally.passed += u32::from(passed);
            }
        }
        Ok(())
    }

    pub fn files(&self) -> usize {
        self.seen.len()
    }

    /// All that there is of a gate, and what is lacking for Default.
    pub fn report(&self, gate: &str) -> Report {
        let tests = self.tests_of(gate).into_iter().map(|(name, tally)| (name.to_owned(), tally)).collect();
        Report { files: self.files(), tests, lacks: self.lacks(gate) }
    }

    pub fn tests_of(&self, gate: &str) -> BTreeMap<&str, Tally> {
        let mark = format!("[FeatureGate:{gate}]");
        self.tests
            .iter()
            .filter(|(name, _)| name.contains(&mark))
            .map(|(name, tally)| (name.as_str(), *tally))
            .collect()
    }

    /// What is lacking for a promotion; nothing is enough.
    pub fn lacks(&self, gate: &str) -> Vec<String> {
        let tests = self.tests_of(gate);
        let mut lacks = Vec::new();
        if tests.len() < TESTS_MIN {
            let found = tests.len();
            let files = self.files();
            lacks.push(format!(
                "{found} tests have [FeatureGate:{gate}] in their names, {TESTS_MIN} are needed; {files} files were read"
            ));
        }
        lacks.extend(tests.iter().filter_map(|(name, tally)| lack(name, *tally)));
        lacks
    }
}

fn lack(name: &str, Tally { runs, passed }: Tally) -> Option<String> {
    match () {
        () if runs < RUNS_MIN => Some(format!("{name:?} has {runs} runs, {RUNS_MIN} are needed")),
        () if passed * 100 < runs * PASS_PERCENT_MIN => {
            Some(format!("{name:?} passed {passed} of {runs} runs, {PASS_PERCENT_MIN} % are needed"))
        }
        () => None,
    }
}

/// Every test that ran, with whether it passed.
fn results(file: &str) -> Result<BTreeMap<String, bool>, EvidenceError> {
    let document = roxmltree::Document::parse(file).map_err(|error| EvidenceError::NotXml(error.to_string()))?;
    let root = document.root_element().tag_name().name();
    if !matches!(root, "testsuites" | "testsuite") {
        return Err(EvidenceError::NotJunit(root.to_owned()));
    }
    let mut results = BTreeMap::new();
    for case in document.descendants().filter(|node| node.tag_name().name() == "testcase") {
        if let Some(passed) = passed(&case) {
            let name = case.attribute("name").unwrap_or_default();
            results.entry(name.to_owned()).and_modify(|so_far| *so_far &= passed).or_insert(passed);
        }
    }
    Ok(results)
}

/// Elements that say of a test that it failed, also where a retry passed: a test that has to be tried twice is no proof.
const FAILED: [&str; 6] = ["failure", "error", "flakyFailure", "flakyError", "rerunFailure", "rerunError"];
/// What writers of results say in `status` or `result` of tests that did not run, and of those that failed.
const NOT_RUN: [&str; 7] = ["skipped", "notrun", "suppressed", "disabled", "ignored", "pending", "canceled"];
const BAD: [&str; 4] = ["failed", "failure", "error", "broken"];

/// `None` if the test did not run.
fn passed(case: &Node<'_, '_>) -> Option<bool> {
    let has = |tags: &[&str]| case.children().any(|child| tags.contains(&child.tag_name().name()));
    let says = |words: &[&str]| {
        let texts = ["status", "result"].into_iter().filter_map(|key| case.attribute(key));
        texts.into_iter().any(|text| words.iter().any(|word| text.eq_ignore_ascii_case(word)))
    };
    if has(&FAILED) || says(&BAD) { Some(false) } else { (!has(&["skipped"]) && !says(&NOT_RUN)).then_some(true) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    fn file(run: u32, tests: usize, failed: bool, skipped: bool) -> String {
        let inner = if failed {
            "<failure/>"
        } else if skipped {
            "<skipped/>"
        } else {
            ""
        };
        let case =
            |i| format!("<testcase name=\"does {i} [FeatureGate:A]\">{}</testcase>", if i == 0 { inner } else { "" });
        let cases: String = (0..tests).map(case).collect();
        format!(
            "<testsuites><testsuite name=\"{run}\">{cases}<testcase name=\"[FeatureGate:AB] x\"/></testsuite></testsuites>"
        )
    }

    fn lacks(runs: u32, tests: usize, failed: u32, skipped: u32) -> Vec<String> {
        let mut evidence = Evidence::default();
        (0..runs).for_each(|i| evidence.add(&file(i, tests, i < failed, i >= failed && i < failed + skipped)).unwrap());
        // The same file again changes nothing.
        evidence.add(&file(0, tests, failed > 0, failed == 0 && skipped > 0)).unwrap();
        evidence.lacks("A")
    }

    #[test_case(14, 5, 0, 0 => 0 ; "just enough")]
    #[test_case(13, 5, 0, 0 => 5 ; "each test has a run too few")]
    #[test_case(14, 4, 0, 0 => 1 ; "a test too few")]
    #[test_case(14, 5, 1, 0 => 1 ; "13 of 14 is 92 percent")]
    #[test_case(20, 5, 1, 0 => 0 ; "19 of 20 is 95 percent")]
    #[test_case(14, 5, 0, 1 => 1 ; "a skipped test did not run")]
    #[test_case(15, 5, 0, 1 => 0 ; "a skipped test does not count against it")]
    fn thresholds(runs: u32, tests: usize, failed: u32, skipped: u32) -> usize {
        lacks(runs, tests, failed, skipped).len()
    }

    #[test]
    fn what_is_not_junit_is_refused() {
        let mut evidence = Evidence::default();
        assert_eq!(evidence.add("<html/>"), Err(EvidenceError::NotJunit("html".to_owned())));
        assert!(matches!(evidence.add("no xml"), Err(EvidenceError::NotXml(_))));
        assert_eq!(evidence.files(), 0);
    }

    /// What Maven, Gradle and googletest write besides.
    #[test_case("", "<flakyFailure/>" => Some(false) ; "a retry that passed")]
    #[test_case("", "<rerunFailure/><failure/>" => Some(false) ; "a retry that failed too")]
    #[test_case("status='run' result='completed'", "" => Some(true) ; "it ran")]
    #[test_case("status='notrun' result='suppressed'", "" => None ; "a test that is disabled")]
    #[test_case("result='Skipped'", "" => None ; "skipped by word")]
    #[test_case("status='failed'", "" => Some(false) ; "failed by word")]
    #[test_case("", "<skipped/><failure/>" => Some(false) ; "a failure is a failure")]
    #[test_case("", "<system-out>failure</system-out><properties/>" => Some(true) ; "what a test says")]
    fn how_a_run_ended(attributes: &str, inner: &str) -> Option<bool> {
        let case = format!("<testcase name='[FeatureGate:A] t' {attributes}>{inner}</testcase>");
        let mut evidence = Evidence::default();
        evidence
            .add(&format!("\u{feff}<x:testsuites xmlns:x='urn:x'><testsuite>{case}</testsuite></x:testsuites>"))
            .unwrap();
        evidence.tests_of("A").get("[FeatureGate:A] t").map(|tally| tally.passed == 1)
    }

    /// A retry within one run does not make two runs of it, and does not hide the failure.
    #[test]
    fn a_retry_in_one_file_is_one_failed_run() {
        let mut evidence = Evidence::default();
        let case = "<testcase name=\"[FeatureGate:A] t\"";
        evidence.add(&format!("<testsuite>{case}><error/></testcase>{case}/></testsuite>")).unwrap();
        assert_eq!(evidence.tests_of("A")["[FeatureGate:A] t"], Tally { runs: 1, passed: 0 });
    }
}
