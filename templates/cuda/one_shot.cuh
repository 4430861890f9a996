// `one_shot`: each rank pushes its partial row to all ranks; each polls its own memory, sums in rank order, and goes
// on.
//
// One cluster per token. A launch of more tokens than clusters (WAVES) first sends every token of a cluster, then
// receives them, so that no rank waits for a block that has not begun.

template <class Spec, class Geo, bool WAVES>
SEAMLINE_DEVICE void one_shot(const typename Spec::Args& args) {
  SEAMLINE_SHARED(f32, partials, RowSums<Spec>::COUNT);
  SEAMLINE_SHARED(u64, arrived, 2);
  typedef Slot<Spec, WAVES> SlotOf;
  Cluster<Spec, Geo> cluster{partials, arrived};
  typename Spec::template Row<Geo> row;
  typename SlotOf::Pack own[Geo::VECTORS];
  cluster.start();
  row.find();
  Spec::load_constants(args, row);
  device::grid_wait();
  if (Geo::EARLY_TRIGGER) device::grid_launch_dependents();
  row.failed = device::control_load(&args.status->fault) != 0;

  const u64 clusters = device::blocks() / Geo::CTAS, first = device::block() / Geo::CTAS;
  // Up to the collective: the lanes leave, and the words of the launch before are emptied.
  u32 epoch;
  for (row.token = first;; row.token += clusters) {
    epoch = device::control_load(args.exchange.epochs + row.token);
    Spec::template load_inputs<true, !WAVES>(args, row);
    Spec::before_exchange(args, row, cluster);
    const SlotOf slot{args.exchange, args.status, row.token, epoch};
    SEAMLINE_UNROLL
    for (int v = 0; v < Geo::VECTORS; v++) {
      pack(own[v], row.exchanged[v]);
      if (row.channels[v] > 0 && !row.failed) slot.push(row.lane[v], own[v]);
    }
    SEAMLINE_UNROLL
    for (int v = 0; v < Geo::VECTORS; v++)
      if (row.channels[v] > 0 && !row.failed) slot.arm(row.lane[v]);
    if (!WAVES || row.token + clusters >= args.tokens) break;
  }
  // From the collective on. A spare lane has nothing to wait for, but takes part in every barrier.
  for (row.token = first;; row.token += clusters) {
    if constexpr (WAVES) {
      epoch = device::control_load(args.exchange.epochs + row.token);
      Spec::template load_inputs<false, true>(args, row);
    }
    const SlotOf slot{args.exchange, args.status, row.token, epoch};
    SEAMLINE_UNROLL
    for (int v = 0; v < Geo::VECTORS; v++)
      slot.gather(row.exchanged[v], row.lane[v], own[v], row.channels[v] > 0, row.failed);
    Spec::after_exchange(args, row, cluster);
    // Every thread that uses the epoch has come this far: it has sent its part of the last row sum, or passed a barrier
    // for this purpose. (A spare warp uses none, and sends nothing.)
    if constexpr (!Spec::SUMS_AFTER_EXCHANGE) cluster.barrier();
    if (row.lane[0] == 0 && !row.failed) device::control_store(args.exchange.epochs + row.token, next_epoch(epoch));
    if (!WAVES || row.token + clusters >= args.tokens) break;
  }
  cluster.wait_for_start();
  if (!Geo::EARLY_TRIGGER) device::grid_launch_dependents();
}
