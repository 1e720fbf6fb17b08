//! The KTH log against the right answers that lie beside the trace, to the last digit.

use crate::common::native::{Conservative, Easy, EasyByWindow};
use crate::common::{Recorder, no_policies, run, trace};
use ephor_core::roles::Scheduling;
use ephor_core::scheduler::FirstComeFirstServed;
use ephor_sim::policies::Policies;
use ephor_sim::report::{Heading, Report};
use ephor_sim::settings::Settings;
use ephor_sim::simulate::{Choice, Options, simulate};
use ephor_sim::swf::Swf;
use ephor_sim::workload::{Estimates, Workload};

pub const FILE: &str = "KTH-SP2-1996-2.1-cln.swf.gz";
const PROCESSORS: u32 = 100;

/// Policy, estimates, total wait, fingerprint.
const ANSWERS: [(&str, Estimates, i64, &str); 7] = [
    ("fifo", Estimates::Max, 11_098_174_771, "f455dea37480d4c9"),
    ("backfill", Estimates::Max, 193_717_209, "bd65a573bbc4359d"),
    ("backfill", Estimates::Kill, 194_642_687, "b3a8260789a6495e"),
    ("backfill", Estimates::Exact, 181_630_428, "a33143febb0ae38f"),
    ("conservative", Estimates::Max, 207_831_297, "390e178fdff89289"),
    ("conservative", Estimates::Kill, 208_360_612, "2aa18bd3f027611e"),
    ("conservative", Estimates::Exact, 200_952_233, "337243ed061417eb"),
];

fn report(scheduling: impl Scheduling + 'static, log: &Swf, estimates: Estimates) -> Report {
    let workload = Workload::of_swf(log, PROCESSORS, estimates).unwrap();
    let (outcome, _) = run(&workload, PROCESSORS, &mut Policies::native(scheduling));
    Report::of(&workload, &outcome, Heading { processors: PROCESSORS, ..Heading::default() })
}

fn kth() -> Option<Swf> {
    let path = trace(FILE)?;
    Some(Swf::parse(&ephor_sim::read::trace(&path).unwrap()).unwrap())
}

#[test]
fn native_twins_give_the_right_answers() {
    let Some(log) = kth() else { return };
    for (policy, estimates, total_wait, fnv) in ANSWERS {
        let reports = match policy {
            "fifo" => vec![report(FirstComeFirstServed, &log, estimates)],
            "conservative" => vec![report(Conservative, &log, estimates)],
            _ => vec![report(Easy, &log, estimates), report(EasyByWindow, &log, estimates)],
        };
        for report in reports {
            assert_eq!((report.jobs, report.dropped, report.never_started), (28_467, 9, 0));
            assert_eq!((report.total_wait_s, report.start_fnv.as_str()), (total_wait, fnv), "{policy} {estimates:?}");
        }
    }
}

#[test]
fn the_policies_give_the_right_answers() {
    let Some(trace) = trace(FILE).filter(|_| !no_policies()) else { return };
    for (policy, estimates, total_wait, fnv) in ANSWERS {
        let mut settings = Settings::default();
        let scheduling = match policy {
            "conservative" => {
                settings.set("reservations=all").unwrap();
                "backfill"
            }
            other => other,
        };
        let options = Options {
            trace: trace.clone(),
            processors: Some(PROCESSORS),
            choice: Choice { scheduling: scheduling.into(), estimates, settings, ..Choice::default() },
            ..Options::default()
        };
        let mut recorder = Recorder::default();
        let report = simulate(&options, &mut recorder).unwrap();
        assert_eq!((report.total_wait_s, report.start_fnv.as_str()), (total_wait, fnv), "{policy} {estimates:?}");
        assert_eq!((report.cycles_out_of_budget, report.groups_dropped), (0, 0));
        assert_eq!(recorder.auditor.findings(), &[] as &[String]);
    }
}

#[test]
fn the_other_figures_are_those_beside_the_trace() {
    let Some(log) = kth() else { return };
    let report = report(Easy, &log, Estimates::Max);
    assert_eq!((report.p90_wait_s, report.max_wait_s), (21_259, 262_194));
    assert_eq!(format!("{:.1}", report.mean_wait_s), "6805.0");
    assert_eq!(format!("{:.3}", report.mean_bounded_slowdown), "90.756");
    assert_eq!(format!("{:.4}", report.utilisation), "0.6992");
    let fifo = self::report(FirstComeFirstServed, &log, Estimates::Max);
    assert_eq!((fifo.p90_wait_s, fifo.max_wait_s), (813_020, 1_018_341));
    assert_eq!(format!("{:.3}", fifo.mean_bounded_slowdown), "7510.785");
}
