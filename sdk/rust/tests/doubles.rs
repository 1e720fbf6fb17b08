//! The doubles behave as the contract says.

use ephor_sdk::scheduling::{Cycle, Keep, Outcome, Refusal, Scope, Slot, StopRule, lift_promises};
use ephor_sdk::testing::FakeCycle;

fn cycle() -> FakeCycle {
    FakeCycle::new(10, 4).running(2, 20).pending(2, 5).pending(4, 5).pending(5, 5).pending(1, 100)
}

#[test]
fn jobs_start_where_they_fit_beside_running_and_reserved() {
    let cycle = cycle();
    let how = cycle.placing();
    let slot = cycle.earliest_start(1, None, &how, 0).unwrap();
    assert_eq!(slot.start(), 20);
    let number = cycle.reserve(&slot, Keep::ThisCycle).unwrap();
    assert!(matches!(cycle.try_start(3, None, &how), Err(Refusal::NotNow(_))), "it would run into the promise");
    assert_eq!(cycle.try_start(0, None, &how), Ok(Outcome::Started), "it ends before");
    cycle.lift(number).unwrap();
    assert!(cycle.lift(number).is_err());
    assert!(matches!(cycle.try_start(0, None, &how), Err(Refusal::Other(_))), "it is not pending any more");
    assert!(matches!(cycle.earliest_start(2, None, &how, 0), Err(Refusal::Never(_))));
}

#[test]
fn lists_end_at_the_first_refusal_or_go_on() {
    let rows = [1, 0];
    let strict = cycle();
    let outcomes = strict.start_in_order(&rows, &strict.placing(), StopRule::FirstRefusal);
    assert!(matches!(outcomes[..], [Outcome::Refused(Refusal::NotNow(_)), Outcome::Untried]));
    let all = cycle();
    let outcomes = all.start_in_order(&rows, &all.placing(), StopRule::EndOfList);
    assert!(matches!(outcomes[..], [Outcome::Refused(_), Outcome::Started]));
    assert_eq!(all.next(Scope::All, None, 10), [1, 2, 3]);
    assert_eq!(all.next(Scope::All, Some(1), 1), [2]);
}

#[test]
fn a_rollback_undoes_everything_but_the_work() {
    let cycle = cycle().with_budget(3);
    let how = cycle.placing();
    let (outer, inner) = (cycle.savepoint(), cycle.savepoint());
    assert!(cycle.try_start(0, None, &how).is_ok());
    cycle.hold(1, "later").unwrap();
    cycle.rollback(outer).unwrap();
    assert!(cycle.accept(inner).is_err(), "it is closed with the outer one");
    assert!(cycle.started().is_empty() && cycle.notes().is_empty());
    assert_eq!(cycle.next(Scope::All, None, 2), [0, 1]);
    assert_eq!(cycle.budget(), 1);
    assert!(cycle.try_start(0, None, &how).is_ok());
    assert_eq!(cycle.try_start(3, None, &how), Err(Refusal::Budget));
}

#[test]
fn columns_are_what_the_test_put_there() {
    let cycle = cycle().with_column("nodes", "free.cpu", &[7, 8]);
    assert_eq!((cycle.rows("jobs"), cycle.rows("nodes")), (Ok(4), Ok(2)));
    assert_eq!(cycle.column("nodes", "free.cpu", Some(&[1])), Ok(vec![8]));
    assert!(cycle.column("nodes", "free.cpu", Some(&[2])).is_err());
    assert!(cycle.column("nodes", "colour", None).is_err() && cycle.rows("moons").is_err());
}

#[test]
fn a_queue_is_started_or_promised_in_order_and_moves_only_to_earlier_times() {
    let cycle = cycle();
    let how = cycle.placing();
    let promised = [Outcome::Started, Outcome::Reserved(20)];
    assert_eq!(cycle.start_or_reserve(&[0, 1], &how, Keep::Durable, false), promised);
    assert_eq!(cycle.promised_at_the_end(), [(1, 20)]);
    assert_eq!(cycle.column("jobs", "promised", Some(&[1, 3])), Ok(vec![20, -1]));
    assert_eq!(cycle.start_or_reserve(&[1], &how, Keep::Durable, true), [Outcome::Reserved(20)]);
    assert!(matches!(
        cycle.start_or_reserve(&[2], &how, Keep::Durable, true)[..],
        [Outcome::Refused(Refusal::Never(_))]
    ));
    lift_promises(&cycle).unwrap();
    assert!(cycle.promised_at_the_end().is_empty());
    assert_eq!(cycle.column("reservations", "start", None), Ok(vec![-1]));
}

#[test]
fn what_is_promised_to_a_job_is_not_in_its_own_way() {
    let cycle = FakeCycle::new(10, 4).pending(4, 5).promised(20).pending(4, 11);
    let how = cycle.placing();
    assert!(matches!(cycle.try_start(1, None, &how), Err(Refusal::NotNow(_))));
    assert_eq!(cycle.try_start(0, None, &how), Ok(Outcome::Started));
    assert!(cycle.promised_at_the_end().is_empty());
}
