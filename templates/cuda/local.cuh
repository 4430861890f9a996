// `local`: one rank, one cluster per token, one pass over memory. Nothing is exchanged, nothing is polled.

template <class Spec, class Geo>
SEAMLINE_DEVICE void local(const typename Spec::Args& args) {
  SEAMLINE_SHARED(f32, partials, RowSums<Spec>::COUNT);
  SEAMLINE_SHARED(u64, arrived, 2);
  Cluster<Spec, Geo> cluster{partials, arrived};
  typename Spec::template Row<Geo> row;
  cluster.start();
  row.find();
  Spec::load_constants(args, row);
  device::grid_wait();
  if (Geo::EARLY_TRIGGER) device::grid_launch_dependents();
  row.failed = false;
  row.token = device::block() / Geo::CTAS;
  Spec::template load_inputs<true, true>(args, row);
  Spec::compute(args, row, cluster);
  cluster.wait_for_start();
  if (!Geo::EARLY_TRIGGER) device::grid_launch_dependents();
}
