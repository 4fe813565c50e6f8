//! Bodies on both sides: JSON values out of an HTTP request, messages out of a gRPC response.

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http_body_util::BodyExt;
use proto::json::Values;
use tonic::{Code, Status};

use super::Limits;

/// The first JSON value of the body, `None` if there is none; what follows it is read and ignored.
pub(super) async fn first_value(mut body: axum::body::Body, limits: Limits) -> Result<Option<Vec<u8>>, Status> {
    let mut values = Values::default();
    let mut first = None;
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|e| Status::new(Code::InvalidArgument, e.to_string()))?.into_data() else {
            continue;
        };
        read += data.len();
        if read > limits.body_bytes_max {
            return Err(body_too_large(read, limits));
        }
        if first.is_none() {
            values.push(&data);
            first = values.take_next().map_err(invalid)?;
        }
    }
    values.end();
    if first.is_none() {
        first = values.take_next().map_err(invalid)?;
    }
    Ok(first)
}

/// The message that a JSON value describes, in a gRPC frame.
pub(super) fn frame_of(input: &str, value: &[u8], limits: Limits) -> Result<Bytes, Status> {
    let message = proto::json::decode(input, value).map_err(invalid)?;
    if message.len() > limits.message_bytes_max {
        return Err(crate::status::message_too_large(message.len(), limits.message_bytes_max));
    }
    Ok(framed(&message))
}

/// A message behind gRPC's prefix: a zero for "not compressed", and the length.
pub(super) fn framed(message: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(message.len() + 5);
    out.push(0);
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(message);
    out.into()
}

pub(super) fn body_too_large(found: usize, limits: Limits) -> Status {
    let text = format!("request body larger than max ({found} vs. {})", limits.body_bytes_max);
    Status::new(Code::ResourceExhausted, text)
}

pub(super) fn invalid(error: proto::json::Error) -> Status {
    Status::new(Code::InvalidArgument, error.to_string())
}

/// Messages of a gRPC response, and how it ended.
pub(super) struct Messages {
    body: tonic::body::Body,
    buffer: BytesMut,
    /// The response said so in its headers, without a body.
    ended: Option<Status>,
}

impl Messages {
    pub(super) fn new(headers: &HeaderMap, body: tonic::body::Body) -> Self {
        Messages { body, buffer: BytesMut::new(), ended: Status::from_header_map(headers) }
    }

    /// The next message, or `None` when the call has ended well.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        loop {
            if let Some(message) = self.take_buffered()? {
                return Ok(Some(message));
            }
            if let Some(status) = &self.ended {
                return if status.code() == Code::Ok { Ok(None) } else { Err(status.clone()) };
            }
            let frame = match self.body.frame().await {
                Some(frame) => frame?,
                None => return Err(Status::new(Code::Internal, "server closed the stream without sending trailers")),
            };
            match frame.into_data() {
                Ok(data) => self.buffer.extend_from_slice(&data),
                Err(frame) => self.ended = frame.trailers_ref().and_then(Status::from_header_map),
            }
        }
    }

    fn take_buffered(&mut self) -> Result<Option<Bytes>, Status> {
        let Some(&[compressed, a, b, c, d]) = self.buffer.first_chunk::<5>() else { return Ok(None) };
        if compressed != 0 {
            return Err(Status::new(Code::Internal, "the response is compressed, which was not asked for"));
        }
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if self.buffer.len() < 5 + length {
            return Ok(None);
        }
        self.buffer.advance(5);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }
}
