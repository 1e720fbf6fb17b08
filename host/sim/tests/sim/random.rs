//! Small random logs: the twins agree, the plan that EASY makes is what a plain sketch of EASY says, and all is audited.

use crate::common::native::{Easy, EasyByWindow};
use crate::common::{no_policies, run, seconds, workload};
use ephor_core::scheduler::FirstComeFirstServed;
use ephor_model::Role;
use ephor_policy::{Host, Loaded, Request, Scheduler, Services, bounds, builtin};
use ephor_sim::policies::Policies;
use ephor_sim::workload::Estimates;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

type Row = (i64, i64, u32, i64);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (0i64..60, 1i64..40, 1u32..9, 1i64..60);
    proptest::collection::vec(row, 1..40)
}

/// EASY from its definition, second by second, over plain numbers.
fn sketch(rows: &[Row], processors: i64, backfill: bool) -> Vec<Option<i64>> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|i| rows[*i].0);
    let jobs: Vec<(i64, i64, i64, i64)> = order
        .iter()
        .map(|i| {
            let (submit, run, width, estimate) = rows[*i];
            (submit, run, i64::from(width), estimate.max(run))
        })
        .collect();
    let mut starts = vec![None; jobs.len()];
    let mut running: BTreeMap<usize, (i64, i64)> = BTreeMap::new();
    for now in 0.. {
        running.retain(|_, (end, _)| *end > now);
        let mut free = processors - running.keys().map(|i| jobs[*i].2).sum::<i64>();
        let mut promise: Option<(i64, i64)> = None;
        for i in 0..jobs.len() {
            let (submit, run, width, limit) = jobs[i];
            if starts[i].is_some() || submit > now {
                continue;
            }
            let fits = match promise {
                None => width <= free,
                Some((shadow, extra)) => width <= free && (now + limit <= shadow || width <= extra),
            };
            if fits {
                starts[i] = Some(now);
                running.insert(i, (now + run, now + limit));
                free -= width;
                if let Some((shadow, extra)) = &mut promise
                    && now + limit > *shadow
                {
                    *extra -= width;
                }
            } else if !backfill {
                break;
            } else if promise.is_none() {
                let mut ends: Vec<(i64, i64)> = running.iter().map(|(j, (_, limit))| (*limit, jobs[*j].2)).collect();
                ends.sort_unstable();
                let mut room = free;
                let mut shadow = now;
                for (end, width_of) in ends {
                    // Everything that ends at the shadow time is free at it.
                    if room >= width && end > shadow {
                        break;
                    }
                    room += width_of;
                    shadow = end;
                }
                promise = Some((shadow, room - width));
            }
        }
        if running.is_empty() && starts.iter().all(Option::is_some) {
            break;
        }
    }
    starts
}

/// The built-in policies, loaded once; `None` where this build has none.
fn built_in() -> Option<(Policies, Policies)> {
    static LOADED: OnceLock<Option<[Arc<Loaded>; 2]>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| {
        if no_policies() {
            return None;
        }
        let host = Host::new(Services::default()).unwrap();
        Some(["scheduling-fifo", "scheduling-backfill"].map(|name| {
            let component = builtin::find(name).unwrap();
            let maxima = bounds::site_maxima(Role::Scheduling);
            let request = Request { role: Role::Scheduling, component, config: "", grants: &[], maxima };
            host.prepare(&request).unwrap().activate(1)
        }))
    });
    let [fifo, backfill] = loaded.as_ref()?;
    Some((Policies::native(Scheduler(fifo.clone())), Policies::native(Scheduler(backfill.clone()))))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn easy_is_what_its_definition_says(rows in rows(), processors in 8u32..14) {
        let workload = workload(&rows, processors, Estimates::Max);
        let expected = sketch(&rows, i64::from(processors), true);
        prop_assert_eq!(seconds(&run(&workload, processors, &mut Policies::native(Easy)).0), expected.clone());
        prop_assert_eq!(seconds(&run(&workload, processors, &mut Policies::native(EasyByWindow)).0), expected);
    }

    #[test]
    fn the_policies_do_what_their_twins_do(rows in rows(), processors in 8u32..14) {
        let Some((fifo, backfill)) = built_in() else { return Ok(()) };
        let workload = workload(&rows, processors, Estimates::Kill);
        let starts = |policies: &mut Policies| seconds(&run(&workload, processors, policies).0);
        prop_assert_eq!(starts(&mut { backfill }), starts(&mut Policies::native(Easy)));
        prop_assert_eq!(starts(&mut { fifo }), starts(&mut Policies::native(FirstComeFirstServed)));
    }

    #[test]
    fn strict_order_is_what_its_definition_says(rows in rows(), processors in 8u32..14) {
        let workload = workload(&rows, processors, Estimates::Max);
        let expected = sketch(&rows, i64::from(processors), false);
        prop_assert_eq!(seconds(&run(&workload, processors, &mut Policies::native(FirstComeFirstServed)).0), expected);
    }

    #[test]
    fn every_estimate_mode_is_audited_and_repeats(rows in rows(), processors in 3u32..14) {
        for (estimates, _) in Estimates::NAMES {
            let workload = workload(&rows, processors, estimates);
            let (first, log) = run(&workload, processors, &mut Policies::native(Easy));
            let (second, again) = run(&workload, processors, &mut Policies::native(Easy));
            prop_assert!(first.starts.iter().all(Option::is_some));
            prop_assert_eq!(first.starts, second.starts);
            prop_assert_eq!(log.log, again.log);
        }
    }
}
