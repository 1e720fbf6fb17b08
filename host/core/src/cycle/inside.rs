//! Starting jobs inside the reservation that they ask for: its nodes are free for them and for nobody else.

use super::{Cycle, CycleRefusal};
use crate::pools::Scope;
use crate::replica::whole_nodes;
use crate::reservations::why_not_inside;
use ephor_model::{Allocation, JobId, ReasonCode, ReservationNo, Span};
use ephor_placement::{ClassId, NoFit, Placing, Slot};
use std::sync::Arc;

impl Cycle {
    /// Places a job on the nodes of its reservation, as if the reservation were not there; what is left of it is kept
    /// as before. Nothing is held after a refusal, which stands in nobody else's way.
    pub(super) fn start_inside(
        &mut self,
        id: JobId,
        no: ReservationNo,
        class: ClassId,
        limit: Span,
        how: &Placing,
    ) -> Result<Arc<Allocation>, CycleRefusal> {
        let (Some((entry, _)), Some(reservation)) = (self.state.element(id), self.state.reservations.get(&no)) else {
            return Err(self.waits_inside(no));
        };
        let (job, reservation) = (entry.job.clone(), reservation.clone());
        if let Some(text) = why_not_inside(&self.state, &job, &reservation.name, self.now, limit) {
            return Err(self.refuse_inside(id, no, text));
        }
        let mut inside = how.clone();
        inside.only = Some(match &how.only {
            None => reservation.nodes.clone(),
            Some(only) => only.iter().copied().filter(|node| reservation.has(*node)).collect(),
        });
        let before = self.replica.cluster.savepoint();
        if let Some(set_aside) = self.set_aside.get(&no) {
            self.replica.cluster.lift(*set_aside);
        }
        let placed = self.replica.cluster.try_start(id, class, self.now, limit, &inside, &mut self.work);
        let drawn = match &placed {
            Ok(allocation) => self.draw(id, allocation),
            Err(_) => Ok(()),
        };
        let refused = match (placed, drawn) {
            (Ok(allocation), Ok(())) => {
                let (start, duration) = (reservation.start, reservation.end - reservation.start);
                let whole = Arc::new(whole_nodes(&self.state, &reservation.nodes));
                let again = self.replica.cluster.reserve(&Slot { start, duration, allocation: whole, class });
                self.set_aside.insert(no, again);
                return Ok(allocation);
            }
            (Ok(_), Err(full)) => Err(full),
            (Err(NoFit::Budget), _) => Err(CycleRefusal::Budget),
            (Err(NoFit::NotNow(why) | NoFit::Never(why)), _) => Ok(why),
        };
        self.replica.cluster.rollback(before);
        let why = refused?;
        Err(self.refuse_inside(id, no, format!("in reservation '{}': {why}", reservation.name)))
    }

    /// The refusal of a job that waits for its reservation.
    pub(super) fn waits_inside(&mut self, no: ReservationNo) -> CycleRefusal {
        let rows = self.book.rows_of_scope(&self.state, Scope::Reservation(no));
        rows.first().map_or(CycleRefusal::NotNow("its reservation is gone".into()), |row| CycleRefusal::Pool(*row))
    }

    fn refuse_inside(&mut self, id: JobId, no: ReservationNo, text: String) -> CycleRefusal {
        self.note_for(id, ReasonCode::Reservation, text.into(), None);
        self.waits_inside(no)
    }
}
