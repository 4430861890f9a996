//! In which optional inputs the ranks of a group may differ.

use super::{Class, Program};
use crate::ParamId;

impl Program {
    /// The inputs that decide what is made of the exchanged value, in order. On all ranks they are present, or on
    /// none; what only feeds the exchange may be there on some.
    pub fn read_after_exchange(&self) -> Vec<ParamId> {
        let mut late: Vec<bool> = self.lines.iter().map(|l| l.after_exchange).collect();
        let mut params = Vec::new();
        // Operands come first, so that from the end on each line is known when it is met.
        for (i, line) in
            self.lines.iter().enumerate().rev().filter(|(_, l)| l.inst.class() != Class::Exchange)
        {
            if late[i] {
                line.inst.operands().for_each(|x| late[x.0 as usize] = true);
                params.extend(line.inst.params());
            }
        }
        params.sort_unstable();
        params.dedup();
        params
    }

    /// The first input that one of two ranks' programs lacks and that both would have to have.
    pub fn presence_conflict(&self, other: &Program) -> Option<ParamId> {
        let both = [self, other].map(Program::read_after_exchange).concat();
        both.into_iter().filter(|p| self.dims.present.has(*p) != other.dims.present.has(*p)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        DType, Dims, Elem, Fixed, Graph, Node, Op, Operation, Output, Param, Presence, Request, Role, ValueId,
    };

    /// `all_reduce(x + before) + (x + after)`
    fn program(present: Presence) -> Program {
        let param = |name: &'static str, optional| Param {
            name: name.into(),
            role: Role::Tokens(Elem::Pattern),
            optional,
            in_place: None,
        };
        let [x, before, after] = [0, 1, 2].map(ValueId);
        let reads = [0, 1, 2].map(|i| Op::Param(ParamId(i)));
        let body = [
            Op::Add(x, before),
            Op::call(Operation::AllReduce, &[ValueId(3).into()]),
            Op::Add(x, after),
            Op::Add(ValueId(4), ValueId(5)),
        ];
        let nodes: Vec<_> = reads.into_iter().chain(body).map(|op| Node { op, name: None }).collect();
        let out = Output {
            name: "out".into(),
            value: ValueId(6),
            role: Role::Tokens(Elem::Pattern),
            in_place: None,
        };
        let graph = Graph {
            name: "p".into(),
            params: vec![param("x", false), param("before", true), param("after", true)].into(),
            nodes: nodes.into(),
            outputs: vec![out].into(),
            fixed: Fixed::default(),
        };
        let request = Request { hidden: Some(8), top_k: None, dtype: Some(DType::F32), ranks: 2 };
        graph.bind(&Dims::bind(&graph, &request, present).unwrap()).unwrap()
    }

    #[test]
    fn what_only_feeds_the_exchange_may_differ() {
        let [all, no_before, no_after] =
            [vec![], vec![ParamId(1)], vec![ParamId(2)]].map(|absent| program(Presence::from_absent(absent)));
        assert_eq!(all.read_after_exchange(), [ParamId(0), ParamId(2)]);
        assert_eq!(all.presence_conflict(&no_before), None);
        // `x + after` is made before the exchange is over, and added to its result all the same.
        assert_eq!(all.presence_conflict(&no_after), Some(ParamId(2)));
        assert_eq!(no_after.presence_conflict(&all), Some(ParamId(2)));
    }
}
