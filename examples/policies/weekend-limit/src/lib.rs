//! Keeps large jobs for the weekend: from Monday to Friday (UTC) a job may ask for so many GPUs and cores only.
//!
//! Copy this folder to begin a policy of your own: change the name here and in `manifest.json`, and what `admit` says.

use ephor_sdk::admission::{Admission, Draft, Intent, Site, Verdict};
use ephor_sdk::{Identity, Timestamp};
use serde::Deserialize;

/// What an administrator may set; `manifest.json` describes the same for people.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Most GPUs of a job from Monday to Friday.
    pub max_gpus: u32,
    /// Most cores of a job from Monday to Friday.
    pub max_cores: u32,
    /// Whether the limits hold on weekends too.
    pub every_day: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_gpus: 4, max_cores: 512, every_day: false }
    }
}

/// The policy.
pub struct WeekendLimit;

impl Admission for WeekendLimit {
    type Config = Config;

    fn admit<D: Draft, S: Site>(
        now: Timestamp,
        who: &Identity,
        _intent: Intent,
        job: &D,
        _site: &S,
        config: &Config,
    ) -> Verdict {
        if is_weekend(now) && !config.every_day {
            return Verdict::Admit(vec![]);
        }
        // Amounts are in thousandths: resource 0 is cores, 2 is GPUs.
        for (resource, name, most) in [(2, "GPUs", config.max_gpus), (0, "cores", config.max_cores)] {
            let asked: i64 = job.total().iter().filter(|a| a.id == resource).map(|a| a.value).sum();
            if asked > i64::from(most) * 1_000 {
                let asked = (asked + 999) / 1_000;
                let until = if config.every_day { "" } else { ", or submit it on Saturday or Sunday" };
                return Verdict::Refuse(format!(
                    "Sorry {}, {asked} {name} are more than the {most} that one job may have today. \
                     Ask for fewer{until}.",
                    who.name
                ));
            }
        }
        Verdict::Admit(vec![])
    }
}

/// Whether a time is on a Saturday or Sunday, UTC.
fn is_weekend(now: Timestamp) -> bool {
    // 1970-01-01 was a Thursday.
    let days_since_thursday = now.div_euclid(86_400_000).rem_euclid(7);
    matches!(days_since_thursday, 2 | 3)
}

ephor_sdk::policy!(Admission for WeekendLimit { manifest: include_str!("../manifest.json") });

#[cfg(test)]
mod tests {
    use ephor_sdk::Amount;
    use ephor_sdk::testing::{FakeDraft, FakeSite, JobValues};

    use super::*;

    const DAY: Timestamp = 86_400_000;

    fn admit(now: Timestamp, gpus: i64, config: &Config) -> Verdict {
        let alice = Identity { uid: 1000, gid: 1000, name: "alice".to_owned(), roles: vec![] };
        let total = vec![Amount { id: 0, value: 1_000 }, Amount { id: 2, value: gpus * 1_000 }];
        let job = FakeDraft::new(JobValues { total, ..JobValues::default() });
        WeekendLimit::admit(now, &alice, Intent::Submit, &job, &FakeSite::default(), config)
    }

    #[test]
    fn large_jobs_wait_for_the_weekend() {
        let config = Config::default();
        assert_eq!(admit(0, 4, &config), Verdict::Admit(vec![]));
        assert!(matches!(admit(0, 5, &config), Verdict::Refuse(text) if text.contains("5 GPUs")));
        assert_eq!(admit(2 * DAY, 5, &config), Verdict::Admit(vec![]));
        assert_eq!(admit(4 * DAY - 1, 5, &config), Verdict::Admit(vec![]));
        assert!(matches!(admit(4 * DAY, 5, &config), Verdict::Refuse(_)));
    }

    #[test]
    fn every_day_means_every_day() {
        let config = Config { every_day: true, ..Config::default() };
        assert!(matches!(admit(2 * DAY, 5, &config), Verdict::Refuse(text) if !text.contains("Saturday")));
    }

    #[test]
    fn the_schema_and_the_code_have_the_same_defaults() {
        let defaults = ephor_sdk::testing::schema_defaults(include_str!("../manifest.json"));
        assert_eq!(ephor_sdk::config::parse(&defaults), Ok(Config::default()));
    }
}
