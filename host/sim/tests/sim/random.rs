//! Small random logs: the twins agree, the schedules of EASY and conservative backfill are what plain sketches of them
//! say, and all is audited.

use crate::common::native::{Conservative, Easy, EasyByWindow};
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

/// Conservative backfill from its definition, over what is free in each second.
fn conservative(rows: &[Row], processors: i64, estimates: Estimates) -> Vec<Option<i64>> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|i| rows[*i].0);
    let jobs: Vec<(i64, i64, i64, i64)> = order
        .iter()
        .map(|i| {
            let (submit, run, width, estimate) = rows[*i];
            let (run, limit) = match estimates {
                Estimates::Max => (run, estimate.max(run)),
                Estimates::Kill => (run.min(estimate), estimate),
                Estimates::Exact => (run, run),
            };
            (submit, run, i64::from(width), limit)
        })
        .collect();
    let horizon = jobs.iter().map(|j| j.0 + j.3).sum::<i64>() as usize + 1;
    let mut free = vec![processors; horizon];
    let hold = |free: &mut Vec<i64>, from: i64, until: i64, width: i64| {
        free[from as usize..until as usize].iter_mut().for_each(|f| *f -= width);
    };
    let first_fit = |free: &[i64], now: i64, width: i64, limit: i64| {
        (now..).find(|at| free[*at as usize..(*at + limit) as usize].iter().all(|f| *f >= width)).unwrap()
    };
    let mut promised: Vec<Option<i64>> = vec![None; jobs.len()];
    let mut starts: Vec<Option<i64>> = vec![None; jobs.len()];
    let mut now = 0;
    while starts.iter().any(Option::is_none) {
        let mut early = false;
        for (start, (_, run, width, limit)) in starts.iter().zip(&jobs) {
            if let Some(start) = start.filter(|start| start + run == now && run < limit) {
                early = true;
                hold(&mut free, now, start + limit, -width);
            }
        }
        for (i, (submit, _, width, limit)) in jobs.iter().copied().enumerate() {
            if starts[i].is_some() || (submit < now && !early) || submit > now {
                continue;
            }
            if let Some(before) = promised[i] {
                hold(&mut free, before, before + limit, -width);
            }
            let at = first_fit(&free, now, width, limit);
            assert!(promised[i].is_none_or(|before| at <= before));
            hold(&mut free, at, at + limit, width);
            promised[i] = Some(at);
        }
        for i in 0..jobs.len() {
            if starts[i].is_none() && promised[i] == Some(now) {
                starts[i] = Some(now);
            }
        }
        now += 1;
    }
    starts
}

/// The built-in policies, loaded once; `None` where this build has none.
fn built_in() -> Option<[Policies; 3]> {
    static LOADED: OnceLock<Option<[Arc<Loaded>; 3]>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| {
        if no_policies() {
            return None;
        }
        let host = Host::new(Services::default()).unwrap();
        let all = r#"{"reservations": "all"}"#;
        Some([("scheduling-fifo", ""), ("scheduling-backfill", ""), ("scheduling-backfill", all)].map(
            |(name, config)| {
                let component = builtin::find(name).unwrap();
                let maxima = bounds::site_maxima(Role::Scheduling);
                let request = Request { role: Role::Scheduling, component, config, grants: &[], maxima };
                host.prepare(&request).unwrap().activate(1)
            },
        ))
    });
    Some(loaded.as_ref()?.each_ref().map(|policy| Policies::native(Scheduler(policy.clone()))))
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
        let Some([fifo, backfill, _]) = built_in() else { return Ok(()) };
        let workload = workload(&rows, processors, Estimates::Kill);
        let starts = |policies: &mut Policies| seconds(&run(&workload, processors, policies).0);
        prop_assert_eq!(starts(&mut { backfill }), starts(&mut Policies::native(Easy)));
        prop_assert_eq!(starts(&mut { fifo }), starts(&mut Policies::native(FirstComeFirstServed)));
    }

    #[test]
    fn conservative_is_what_its_definition_says(rows in rows(), processors in 8u32..14) {
        for (estimates, _) in Estimates::NAMES {
            let workload = workload(&rows, processors, estimates);
            let expected = conservative(&rows, i64::from(processors), estimates);
            let native = run(&workload, processors, &mut Policies::native(Conservative)).0;
            prop_assert_eq!(seconds(&native), expected.clone());
            if let Some([_, _, mut policy]) = built_in() {
                prop_assert_eq!(seconds(&run(&workload, processors, &mut policy).0), expected);
            }
        }
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
