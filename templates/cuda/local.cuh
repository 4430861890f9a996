// `local`: one rank, one cluster per token, one pass over memory. Nothing is exchanged, nothing is polled.

template <class Spec, class Geo>
SEAMLINE_DEVICE void local(const typename Spec::Args& args) {
  SEAMLINE_SHARED(f32, partials, RowSums<Spec>::COUNT);
  Cluster<Spec, Geo> cluster = Cluster<Spec, Geo>::start(partials);
  Row<Spec, Geo> row;
  row.begin(args);
  device::grid_wait();
  if (Geo::EARLY_TRIGGER) device::grid_launch_dependents();
  row.template turn_to<true, true>(args, device::block() / Geo::CTAS, false);
  run_phases<Spec, Geo, 0, Spec::PHASES - 1>(args, row, cluster);
  cluster.wait_for_start();
  if (!Geo::EARLY_TRIGGER) device::grid_launch_dependents();
}
