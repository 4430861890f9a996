// `one_shot`: each rank pushes its partial row to all ranks; each polls its own memory, sums in rank order, and goes
// on.
//
// One cluster per token. A launch of more tokens than clusters (WAVES) first sends every token of a cluster, then
// receives them, so that no rank waits for a block that has not begun.

template <class Spec, class Geo, bool WAVES>
struct OneShot {
  typedef typename Spec::Args Args;
  typedef Slot<Spec, WAVES> SlotOf;

  const Args& args;
  Cluster<Spec, Geo> cluster;
  Row<Spec, Geo> row;
  typename SlotOf::Pack own[Geo::VECTORS];

  __device__ __forceinline__ SlotOf slot(int v, u32 epoch) const {
    return SlotOf{args, row.at[v].token, epoch, row.at[v].lane};
  }

  __device__ __forceinline__ bool exists(int v) const { return row.at[v].channels > 0; }

  // Up to the collective: the lanes leave, and the words of the launch before are emptied.
  __device__ __forceinline__ void send(u32 epoch) {
    run_phases<Spec, Geo, 0, Spec::EXCHANGE_PHASE>(args, row, cluster);
    SEAMLINE_UNROLL
    for (int v = 0; v < Geo::VECTORS; v++) {
      own[v] = pack<typename Spec::Wire>(row.exchanged[v]);
      slot(v, epoch).push(own[v], exists(v) && !row.at[v].failed);
    }
    SEAMLINE_UNROLL
    for (int v = 0; v < Geo::VECTORS; v++) slot(v, epoch).arm(exists(v) && !row.at[v].failed);
  }

  // From the collective on. A spare lane has nothing to wait for, but takes part in every barrier.
  __device__ __forceinline__ void receive(u32 epoch) {
    SEAMLINE_UNROLL
    for (int v = 0; v < Geo::VECTORS; v++)
      row.exchanged[v] = slot(v, epoch).gather(own[v], exists(v), row.at[v].failed);
    run_phases<Spec, Geo, Spec::EXCHANGE_PHASE + 1, Spec::PHASES - 1>(args, row, cluster);
    // Every reader of the epoch is past a barrier: the last row sum's, or one for this purpose.
    if constexpr (!Spec::SUMS_AFTER_EXCHANGE) cluster.barrier();
    if (row.at[0].lane == 0 && !row.at[0].failed)
      device::control_store(args.exchange.epochs + row.at[0].token, next_epoch(epoch));
  }

  __device__ __forceinline__ void run() {
    row.begin(args);
    device::grid_wait();
    if (Geo::EARLY_TRIGGER) device::grid_launch_dependents();
    const bool failed = device::control_load(&args.status->fault) != 0;
    const u64 token = device::block() / Geo::CTAS;
    if constexpr (!WAVES) {
      const u32 epoch = device::control_load(args.exchange.epochs + token);
      row.template turn_to<true, true>(args, token, failed);
      send(epoch);
      receive(epoch);
    } else {
      const u64 clusters = device::blocks() / Geo::CTAS;
      for (u64 t = token; t < args.tokens; t += clusters) {
        const u32 epoch = device::control_load(args.exchange.epochs + t);
        row.template turn_to<true, false>(args, t, failed);
        send(epoch);
      }
      for (u64 t = token; t < args.tokens; t += clusters) {
        const u32 epoch = device::control_load(args.exchange.epochs + t);
        row.template turn_to<false, true>(args, t, failed);
        receive(epoch);
      }
    }
    cluster.wait_for_start();
    if (!Geo::EARLY_TRIGGER) device::grid_launch_dependents();
  }
};

template <class Spec, class Geo, bool WAVES>
SEAMLINE_DEVICE void one_shot(const typename Spec::Args& args) {
  SEAMLINE_SHARED(f32, partials, RowSums<Spec>::COUNT);
  OneShot<Spec, Geo, WAVES> run{args, Cluster<Spec, Geo>::start(partials)};
  run.run();
}
