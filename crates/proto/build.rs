//! Compiles `proto/*.proto` without protoc.
//!
//! The descriptor set is written in protox's own encoding: the `prost_types` form drops custom options, and
//! the version annotations and HTTP routes are custom options.

use std::{env, error::Error, fs, path::PathBuf};

const FILES: &[&str] = &[
    "authpb.proto",
    "etcdserver.proto",
    "leasepb.proto",
    "membershippb.proto",
    "mvccpb.proto",
    "raft_internal.proto",
    "raftpb.proto",
    "rpc.proto",
    "snappb.proto",
    "v3electionpb.proto",
    "v3lockpb.proto",
    "walpb.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(false).open_files(FILES)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), compiler.encode_file_descriptor_set())?;
    // Full names of messages, for `min_version` and `json`.
    let mut config = tonic_prost_build::Config::new();
    config.enable_type_names();
    let services = tonic_prost_build::configure().bytes(".").codec_path("crate::codec::MessageCodec");
    services.compile_fds_with_config(compiler.file_descriptor_set(), config)?;
    Ok(())
}
