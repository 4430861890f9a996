//! Device memory, and a launch that is compared with the reference.

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, result};
use seamline::args::{Arg, ArgList};
use seamline::erased::{self, Erased};
use seamline::prelude::*;
use seamline::{Graph, cuda};
use seamline_codegen::program::Program;
use seamline_codegen::reference::{self, Buffer, RankInputs, RankOutputs};
use seamline_codegen::workload::{Argument, Workload};
use seamline_codegen::{Dims, ParamId, Presence, Request};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What outputs hold before a launch. No test's results are full of it.
pub const UNWRITTEN: u8 = 0xA5;

/// A GPU that no other test uses meanwhile.
pub struct Gpu {
    pub context: Arc<CudaContext>,
    _alone: MutexGuard<'static, ()>,
}

/// The GPU, or nothing, said aloud.
pub fn gpu() -> Option<Gpu> {
    static ONE: Mutex<()> = Mutex::new(());
    let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Streams that come and go must not put two ranks on one hardware queue.
    // SAFETY: one test at a time comes here, and no other thread touches the environment.
    unsafe { std::env::set_var("CUDA_DEVICE_MAX_CONNECTIONS", "32") };
    match cuda::context(0).and_then(|context| Group::single(&context).map(|_| context)) {
        Ok(context) => {
            // SAFETY: tests wait for the device before they reuse memory on another stream.
            unsafe { context.disable_event_tracking() };
            Some(Gpu { context, _alone: alone })
        }
        Err(error) => {
            eprintln!("SKIPPED: {error}");
            None
        }
    }
}

/// An argument in device memory.
pub enum Device {
    Absent,
    Scalar(f32),
    Tensor(DeviceBuffer),
}

/// Elements of a dtype that is known at run time.
pub struct DeviceBuffer {
    bytes: CudaSlice<u8>,
    dtype: DType,
    len: usize,
}

impl DeviceBuffer {
    pub fn upload(stream: &Arc<CudaStream>, buffer: &Buffer) -> DeviceBuffer {
        // An allocation of nothing is an error.
        let bytes = if buffer.is_empty() { &[0; 16] } else { buffer.bytes() };
        DeviceBuffer { bytes: stream.clone_htod(bytes).unwrap(), dtype: buffer.dtype(), len: buffer.len() }
    }

    pub fn download(&self, stream: &Arc<CudaStream>) -> Buffer {
        let bytes = stream.clone_dtoh(&self.bytes).unwrap();
        stream.synchronize().unwrap();
        Buffer::from_bytes(self.dtype, &bytes)
    }

    /// Puts other elements in the same place.
    pub fn overwrite(&mut self, stream: &Arc<CudaStream>, buffer: &Buffer) {
        stream.memcpy_htod(buffer.bytes(), &mut self.bytes).unwrap();
    }

    fn address(&self) -> u64 {
        self.bytes.device_ptr(self.bytes.stream()).0
    }

    pub fn input(&self) -> Input<'_> {
        // SAFETY: tests wait for the device before the buffer is dropped or written.
        unsafe { Input::raw(self.address(), self.dtype, self.len) }
    }

    pub fn output(&self) -> Output<'_> {
        // SAFETY: as above; the checks find two uses in one launch.
        unsafe { Output::raw(self.address(), self.dtype, self.len) }
    }
}

/// One rank's memory.
pub struct RankMemory {
    pub inputs: Vec<Device>,
    /// Those that are not in place.
    pub outputs: Vec<DeviceBuffer>,
}

impl RankMemory {
    pub fn new(
        stream: &Arc<CudaStream>,
        program: &Program,
        arguments: &[Argument],
        tokens: usize,
    ) -> RankMemory {
        let inputs = arguments.iter().map(|argument| match argument {
            Argument::Absent => Device::Absent,
            Argument::Scalar(x) => Device::Scalar(*x),
            Argument::Tensor(buffer) => Device::Tensor(DeviceBuffer::upload(stream, buffer)),
        });
        let own = program.outputs.iter().filter(|o| o.in_place.is_none());
        let outputs = own.map(|o| {
            let mut unwritten = Buffer::new(o.tensor.dtype, o.tensor.elements(tokens.max(1) as u64) as usize);
            unwritten.bytes_mut().fill(UNWRITTEN);
            DeviceBuffer::upload(stream, &unwritten)
        });
        RankMemory { inputs: inputs.collect(), outputs: outputs.collect() }
    }

    pub fn args<'a>(&'a self, program: &Program) -> ArgList<'a> {
        let in_place = |i| program.outputs.iter().any(|o| o.in_place == Some(ParamId(i as u32)));
        let has = |i| program.present().any(|(id, _)| id == ParamId(i as u32));
        let inputs = self.inputs.iter().enumerate().map(|(i, input)| match input {
            _ if !has(i) => Arg::Absent,
            Device::Absent => Arg::Absent,
            Device::Scalar(x) => Arg::Scalar(*x),
            Device::Tensor(buffer) if in_place(i) => Arg::InPlace(buffer.output()),
            Device::Tensor(buffer) => Arg::Input(buffer.input()),
        });
        inputs.chain(self.outputs.iter().map(|o| Arg::Output(o.output()))).collect()
    }

    /// Makes the outputs that are not in place unwritten again.
    pub fn clear(&mut self, stream: &Arc<CudaStream>) {
        for output in &mut self.outputs {
            let (address, bytes) = (output.address(), output.bytes.len());
            // SAFETY: that many bytes are there, borrowed mutably; tests wait for the device before they drop them.
            unsafe { result::memset_d8_async(address, UNWRITTEN, bytes, stream.cu_stream()) }.unwrap();
        }
    }

    /// What the program's outputs hold, in its order.
    pub fn stored(&self, stream: &Arc<CudaStream>, program: &Program) -> Vec<Buffer> {
        let mut own = self.outputs.iter();
        let outputs = program.outputs.iter().map(|output| match output.in_place {
            Some(param) => match &self.inputs[param.0 as usize] {
                Device::Tensor(buffer) => buffer.download(stream),
                _ => panic!("a tensor is updated in place"),
            },
            None => own.next().unwrap().download(stream),
        });
        outputs.collect()
    }
}

/// A group on one GPU with a pattern prepared, each rank on a stream of its own.
pub struct Fixture {
    pub graph: &'static Graph,
    pub ranks: Vec<Rank>,
    pub streams: Vec<Arc<CudaStream>>,
    pub kernels: Vec<Kernel<Erased>>,
    request: Request,
}

impl Fixture {
    pub fn new(
        gpu: &Gpu,
        graph: &'static Graph,
        ranks: u32,
        hidden: u32,
        top_k: u32,
        options: &Prepare,
    ) -> Fixture {
        Fixture::with_dtype(gpu, graph, ranks, (hidden, top_k, DType::Bf16), options)
    }

    pub fn with_dtype(
        gpu: &Gpu,
        graph: &'static Graph,
        ranks: u32,
        (hidden, top_k, dtype): (u32, u32, DType),
        options: &Prepare,
    ) -> Fixture {
        let ranks = Group::loopback(&gpu.context, ranks).unwrap();
        Fixture::on(gpu, graph, ranks, (hidden, top_k, dtype), options)
    }

    /// On a group that there is.
    pub fn on(
        gpu: &Gpu,
        graph: &'static Graph,
        ranks: Vec<Rank>,
        (hidden, top_k, dtype): (u32, u32, DType),
        options: &Prepare,
    ) -> Fixture {
        let top_k = graph.has_top_k().then_some(top_k);
        let mut options = options.clone().hidden(hidden).dtype(dtype);
        if let Some(top_k) = top_k {
            options = options.top_k(top_k);
        }
        Fixture {
            graph,
            kernels: erased::prepare_all(graph, &ranks, &options).unwrap_or_else(|e| panic!("{e}")),
            streams: ranks.iter().map(|_| gpu.context.new_stream().unwrap()).collect(),
            request: Request { hidden: Some(hidden), top_k, dtype: Some(dtype), ranks: ranks.len() as u32 },
            ranks,
        }
    }

    pub fn program(&self, present: Presence) -> Program {
        self.graph.bind(&Dims::bind(self.graph, &self.request, present).unwrap()).unwrap()
    }

    /// Every rank's memory for a workload.
    pub fn memory(&self, program: &Program, workload: &Workload) -> Vec<RankMemory> {
        let ranks = self.streams.iter().enumerate();
        let memory = ranks.map(|(i, stream)| {
            RankMemory::new(stream, program, workload.rank(self.source(program, i)), workload.tokens())
        });
        let memory = memory.collect();
        self.wait();
        memory
    }

    /// A pattern without a collective has one rank's workload for all.
    fn source(&self, program: &Program, rank: usize) -> usize {
        rank % program.dims.ranks as usize
    }

    pub fn launch(
        &self,
        program: &Program,
        memory: &[RankMemory],
        tokens: usize,
    ) -> Result<(), seamline::Error> {
        erased::launch_all(&self.kernels, &self.streams, memory.iter().map(|m| (tokens, m.args(program))))
    }

    pub fn wait(&self) {
        self.streams.iter().for_each(|s| s.synchronize().unwrap());
    }

    /// What the reference says of a workload, which may have more optional inputs than the program.
    pub fn expected(&self, program: &Program, workload: &Workload) -> Vec<RankOutputs> {
        let has = |i| program.present().any(|(id, _)| id == ParamId(i as u32));
        let input =
            |(i, argument): (usize, &'_ Argument)| if has(i) { argument.clone() } else { Argument::Absent };
        let arguments: Vec<Vec<_>> = (0..program.dims.ranks as usize)
            .map(|rank| workload.rank(rank).iter().enumerate().map(input).collect())
            .collect();
        let inputs: Vec<_> =
            arguments.iter().map(|rank| RankInputs(rank.iter().map(Argument::input).collect())).collect();
        reference::run(program, &inputs, workload.tokens()).unwrap()
    }

    /// Asserts that the first `tokens` rows on every rank are those expected, and that rows past them, of outputs that
    /// are not in place, are unwritten.
    pub fn compare(
        &self,
        what: &str,
        program: &Program,
        expected: &[RankOutputs],
        tokens: usize,
        memory: &[RankMemory],
    ) {
        self.wait();
        for (rank, memory) in memory.iter().enumerate() {
            let stored = memory.stored(&self.streams[rank], program);
            for (i, output) in program.outputs.iter().enumerate() {
                let (hidden, size) = (output.tensor.width as usize, output.tensor.dtype.size());
                let bytes = tokens * hidden * size;
                let want = &expected[self.source(program, rank)].outputs[i].bytes()[..bytes];
                let (got, rest) = stored[i].bytes().split_at(bytes);
                if output.in_place.is_none() {
                    // Row by row: comparing slices is much faster than comparing bytes.
                    let row = vec![UNWRITTEN; hidden * size];
                    let written = rest.chunks(row.len()).position(|r| r != row);
                    assert_eq!(written, None, "{what}: rank {rank}, `{}`, rows past T={tokens}", output.name);
                }
                if got == want {
                    continue;
                }
                let differ = |(_, (a, b)): &(usize, (&[u8], &[u8]))| a != b;
                let mut wrong = got.chunks(size).zip(want.chunks(size)).enumerate().filter(differ);
                if let Some((at, (got, want))) = wrong.next() {
                    panic!(
                        "{what}: rank {rank}, `{}`, token {}, channel {}: {got:02x?}, not {want:02x?} ({} more are wrong)",
                        output.name,
                        at / hidden,
                        at % hidden,
                        wrong.count(),
                    );
                }
            }
        }
        for rank in &self.ranks {
            assert_eq!(rank.status().unwrap().fault, None, "{what}");
        }
    }

    /// Launches a workload once and compares.
    pub fn run(&self, what: &str, program: &Program, workload: &Workload) {
        let memory = self.memory(program, workload);
        self.launch(program, &memory, workload.tokens()).unwrap_or_else(|e| panic!("{what}: {e}"));
        self.compare(what, program, &self.expected(program, workload), workload.tokens(), &memory);
    }
}

/// The variant without the optional inputs at `absent`.
pub fn without(absent: &[u32]) -> Presence {
    Presence::from_absent(absent.iter().map(|p| ParamId(*p)))
}
