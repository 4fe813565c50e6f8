//! Long-lived streams in both directions, which carry a token as calls do.

use std::{future::Future, sync::Arc};

use futures_util::{Stream, StreamExt, TryStreamExt, stream, stream::BoxStream};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Request, Response, Status, transport::Channel};

use crate::{
    Error, Result,
    call::{Caller, Limits, note, noted},
    login::Token,
    pool::Member,
};

/// Why a stream ended.
pub(crate) enum Broken {
    /// Its token was refused, and there is a new one: it may be opened again at once.
    Renewed,
    Failed(Error),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Broken {
        Broken::Failed(error)
    }
}

pub(crate) type Requests<Q> = Request<UnboundedReceiverStream<Q>>;
pub(crate) type Responses<R> = BoxStream<'static, Result<R, Broken>>;

impl Caller {
    /// Opens a stream to one member. Everything happens while its answers are waited for: servers send their headers
    /// with their first answer, so that opening must not hold up requests.
    ///
    /// With `may_renew` false a refused token is an error like any other: it was a new one.
    pub fn stream<Q, R, F, S, T>(
        &self,
        member: Arc<Member>,
        receiver: mpsc::UnboundedReceiver<Q>,
        may_renew: bool,
        open: F,
    ) -> Responses<R>
    where
        Q: Send + 'static,
        R: Send + 'static,
        F: FnOnce(Channel, Limits, Requests<Q>) -> S + Send + 'static,
        S: Future<Output = Result<Response<T>, Status>> + Send,
        T: Stream<Item = Result<R, Status>> + Send + 'static,
    {
        let caller = self.clone();
        let with_token = async move {
            let token = caller.token().await?;
            let (opener, used) = (caller.clone(), token.clone());
            let opened = async move {
                let request = opener.request(UnboundedReceiverStream::new(receiver), &used);
                let channel = opener.channel(&member, &used).await?;
                let answers = note(&member, open(channel, opener.limits(), request).await).await?;
                let answers = opener.accept(&member, answers)?;
                Ok::<_, Error>(answers.or_else(move |status| noted(member.clone(), status)))
            };
            let answers = stream::once(opened).try_flatten();
            Ok::<_, Broken>(answers.or_else(move |error| caller.clone().mend(token.clone(), error, may_renew)))
        };
        stream::once(with_token).try_flatten().boxed()
    }

    async fn mend<R>(self, token: Token, error: Error, may_renew: bool) -> Result<R, Broken> {
        match may_renew && self.renew(&token, &error).await? {
            true => Err(Broken::Renewed),
            false => Err(Broken::Failed(error)),
        }
    }
}
