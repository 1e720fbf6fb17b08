//! The KTH log against the right answers that lie beside the trace, to the last digit.

use crate::common::native::{Easy, EasyByWindow};
use ephor_core::roles::Scheduling;
use ephor_core::scheduler::FirstComeFirstServed;
use ephor_model::Role;
use ephor_sim::driver;
use ephor_sim::policies::Policies;
use ephor_sim::report::{Heading, Report};
use ephor_sim::settings::Settings;
use ephor_sim::simulate::{Options, simulate};
use ephor_sim::swf::Swf;
use ephor_sim::workload::{Estimates, Workload};
use std::time::Instant;

pub const FILE: &str = "KTH-SP2-1996-2.1-cln.swf.gz";
const PROCESSORS: u32 = 100;

/// Policy, estimates, total wait, fingerprint.
const ANSWERS: [(&str, Estimates, i64, &str); 4] = [
    ("fifo", Estimates::Max, 11_098_174_771, "f455dea37480d4c9"),
    ("backfill", Estimates::Max, 193_717_209, "bd65a573bbc4359d"),
    ("backfill", Estimates::Kill, 194_642_687, "b3a8260789a6495e"),
    ("backfill", Estimates::Exact, 181_630_428, "a33143febb0ae38f"),
];

fn report(scheduling: impl Scheduling + 'static, log: &Swf, estimates: Estimates) -> Report {
    let workload = Workload::of_swf(log, PROCESSORS, estimates).unwrap();
    let began = Instant::now();
    let outcome =
        driver::run(&workload, driver::one_node(PROCESSORS), &mut Policies::native(scheduling), &mut ()).unwrap();
    let wall_s = began.elapsed().as_secs_f64();
    let heading = Heading { processors: PROCESSORS, wall_s, ..Heading::default() };
    let report = Report::of(&workload, &outcome, heading);
    println!("{}: {} cycles in {wall_s:.3} s", estimates.name(), report.cycles);
    report
}

fn kth() -> Option<Swf> {
    let path = crate::common::trace(FILE)?;
    Some(Swf::parse(&ephor_sim::read::trace(&path).unwrap()).unwrap())
}

#[test]
fn native_twins_give_the_right_answers() {
    let Some(log) = kth() else { return };
    for (policy, estimates, total_wait, fnv) in ANSWERS {
        let reports = match policy {
            "fifo" => vec![report(FirstComeFirstServed, &log, estimates)],
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
    let Some(trace) = crate::common::trace(FILE) else { return };
    if ephor_sim::policies::built_in(Role::Scheduling).is_empty() {
        println!("skipped: no policies are built in; `make build` makes them first");
        return;
    }
    for (policy, estimates, total_wait, fnv) in ANSWERS {
        let options = Options {
            trace: trace.clone(),
            processors: Some(PROCESSORS),
            scheduling: policy.into(),
            priority: None,
            estimates,
            settings: Settings::default(),
        };
        let report = simulate(&options, &mut ()).unwrap();
        println!("{policy} {}: {:.3} s", estimates.name(), report.wall_s);
        assert_eq!((report.total_wait_s, report.start_fnv.as_str()), (total_wait, fnv), "{policy} {estimates:?}");
        assert_eq!((report.cycles_out_of_budget, report.groups_dropped), (0, 0));
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
}
