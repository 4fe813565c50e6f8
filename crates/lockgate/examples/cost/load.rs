//! Calls over one connection, many at once.

use futures_util::{StreamExt, stream};
use proto::etcdserverpb::{PutRequest, RangeRequest, kv_client::KvClient};
use tonic::{Request, Status, metadata::MetadataValue, transport::Channel};

use crate::Outcome;

const AT_ONCE: usize = 32;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    Put,
    Range,
    SerializableRange,
}

pub(crate) async fn send(channel: &Channel, call: Call, required: bool, count: usize) -> Outcome<()> {
    let calls = stream::iter(0..count).map(|i| one(channel.clone(), call, required, i));
    let mut calls = calls.buffer_unordered(AT_ONCE);
    while let Some(done) = calls.next().await {
        done?;
    }
    Ok(())
}

async fn one(channel: Channel, call: Call, required: bool, i: usize) -> Result<(), Status> {
    let mut kv = KvClient::new(channel);
    let key = format!("key-{}", i % 100).into();
    match call {
        Call::Put => {
            let put = PutRequest { key, value: vec![b'v'; 256].into(), ..Default::default() };
            kv.put(request(put, required)).await.map(drop)
        }
        Call::Range | Call::SerializableRange => {
            let serializable = matches!(call, Call::SerializableRange);
            let range = RangeRequest { key, serializable, ..Default::default() };
            kv.range(request(range, required)).await.map(drop)
        }
    }
}

fn request<T>(message: T, required: bool) -> Request<T> {
    let mut request = Request::new(message);
    if required {
        request.metadata_mut().insert("require-feature", MetadataValue::from_static("AtomicIncrement"));
    }
    request
}
