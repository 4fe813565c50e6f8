//! gRPC server reflection, so that `grpcurl` and the like can ask what there is.

use tonic_reflection::server::v1::{ServerReflection, ServerReflectionServer};

pub(crate) fn service() -> ServerReflectionServer<impl ServerReflection> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
        .build_v1()
        .expect("the descriptor set was made by our own build")
}
