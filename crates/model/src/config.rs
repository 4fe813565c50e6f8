//! What is explored: who is there at the start, and how much may happen.

/// How often each kind of event may happen. These are the only bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counts {
    /// Crashes, each with a restart under any flags.
    pub crashes: u8,
    /// Members added, as voters or learners.
    pub joins: u8,
    pub removals: u8,
    /// Promotions that are applied or refused.
    pub promotions: u8,
    pub versions: u8,
}

impl Counts {
    pub fn all(n: u8) -> Counts {
        Counts { crashes: n, joins: n, removals: n, promotions: n, versions: n }
    }
}

/// One exploration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Voters at the start, with any flags each.
    pub voters: usize,
    /// Learners at the start, with any flags each.
    pub learners: usize,
    /// Cluster features, 1 or 2.
    pub features: u32,
    /// Whether members may also have a binary that knows no cluster feature.
    pub unknowing: bool,
    pub counts: Counts,
    /// Cluster versions 3.x that there are; the first is the one at the start.
    pub minors: Vec<u8>,
    /// Whether members lag behind the log. Without it each applies an entry when it is appended, see [`crate`] for why
    /// that leaves out nothing but what a lagging leader appends.
    pub lag: bool,
    /// Whether messages stay sent that no state can accept any more. Without it they are forgotten, and in every state
    /// all of their kind are tried instead: none may have an effect.
    pub keep_void: bool,
    /// Whether states are one that differ only in which member has which id.
    pub symmetry: bool,
}

impl Config {
    /// One feature, two voters.
    pub fn new(counts: Counts) -> Config {
        Config {
            voters: 2,
            learners: 0,
            features: 1,
            unknowing: false,
            counts,
            minors: vec![8, 7, 9],
            lag: false,
            keep_void: false,
            symmetry: true,
        }
    }

    /// Members that there can be in all.
    pub fn slots(&self) -> usize {
        self.voters + self.learners + usize::from(self.counts.joins)
    }
}
