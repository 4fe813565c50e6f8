//! `role`: what users with a role may read and write.

use std::ffi::OsString;

use bytes::Bytes;
use client::{Permission, prefix_end};

use super::{into_bytes, only};
use crate::{
    context::Context,
    failure::Failure,
    print::{Done, RoleShown, revoked},
};

/// Role related commands
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct RoleArgs {
    #[command(subcommand)]
    pub command: RoleCommand,
}

#[derive(clap::Subcommand)]
pub(crate) enum RoleCommand {
    /// Adds a new role
    #[command(after_help = "Example: lockgatectl role add operator")]
    Add {
        /// The role's name
        #[arg(value_name = "NAME")]
        args: Vec<String>,
    },
    /// Deletes a role
    #[command(after_help = "Example: lockgatectl role delete operator")]
    Delete {
        /// The role's name
        #[arg(value_name = "NAME")]
        args: Vec<String>,
    },
    /// Gets detailed information of a role
    #[command(after_help = "Example: lockgatectl role get operator")]
    Get {
        /// The role's name
        #[arg(value_name = "NAME")]
        args: Vec<String>,
    },
    /// Lists all roles
    #[command(after_help = "Example: lockgatectl role list")]
    List {
        #[arg(hide = true)]
        args: Vec<String>,
    },
    /// Grants a key to a role
    #[command(after_help = "Example: lockgatectl role grant-permission operator readwrite --prefix /jobs/")]
    GrantPermission {
        #[command(flatten)]
        keys: Keys,
        /// The role's name; read, write or readwrite; a key, and where a range of keys ends
        #[arg(value_name = "ROLE TYPE KEY [END]")]
        args: Vec<OsString>,
    },
    /// Revokes a key from a role
    #[command(after_help = "Example: lockgatectl role revoke-permission operator --prefix /jobs/")]
    RevokePermission {
        #[command(flatten)]
        keys: Keys,
        /// The role's name; a key, and where a range of keys ends
        #[arg(value_name = "ROLE KEY [END]")]
        args: Vec<OsString>,
    },
}

#[derive(clap::Args)]
pub(crate) struct Keys {
    /// All keys that begin with the key
    #[arg(long)]
    prefix: bool,
    /// All keys from the key on
    #[arg(long)]
    from_key: bool,
}

pub(crate) async fn run(context: &Context, command: RoleCommand) -> Result<(), Failure> {
    match command {
        RoleCommand::Add { args } => {
            let name = only(args, "role add command requires role name as its argument")?;
            let (client, style) = context.open().await?;
            let response = client.role_add(&name).await?;
            style.show(&Done { text: format!("Role {name} created"), response })
        }
        RoleCommand::Delete { args } => {
            let role = only(args, "role delete command requires role name as its argument")?;
            let (client, style) = context.open().await?;
            let response = client.role_delete(&role).await?;
            style.show(&Done { text: format!("Role {role} deleted"), response })
        }
        RoleCommand::Get { args } => {
            let role = only(args, "role get command requires role name as its argument")?;
            let (client, style) = context.open().await?;
            let response = client.role_get(&role).await?;
            style.show(&RoleShown { role, response })
        }
        RoleCommand::List { args } if !args.is_empty() => {
            Err(Failure::bad_args("role list command requires no arguments"))
        }
        RoleCommand::List { .. } => {
            let (client, style) = context.open().await?;
            style.show(&client.role_list().await?)
        }
        RoleCommand::GrantPermission { keys, args } => grant(context, &keys, args).await,
        RoleCommand::RevokePermission { keys, args } => revoke(context, &keys, args).await,
    }
}

async fn grant(context: &Context, keys: &Keys, args: Vec<OsString>) -> Result<(), Failure> {
    let complaint = "role grant command requires role name, permission type, and key [endkey] as its argument";
    let ([role, kind], range) = split(args).ok_or_else(|| Failure::bad_args(complaint))?;
    let of = match kind.to_uppercase().as_str() {
        "READ" => Permission::read,
        "WRITE" => Permission::write,
        "READWRITE" => Permission::read_write,
        _ => return Err(Failure::bad_args(format!("invalid permission type: {kind}"))),
    };
    let (key, end) = keys.range(range)?;
    let (client, style) = context.open().await?;
    let response = client.role_grant_permission(&role, of(Permission::range(key, end))).await?;
    style.show(&Done { text: format!("Role {role} updated"), response })
}

async fn revoke(context: &Context, keys: &Keys, args: Vec<OsString>) -> Result<(), Failure> {
    let complaint = "role revoke-permission command requires role name and key [endkey] as its argument";
    let ([role], range) = split(args).ok_or_else(|| Failure::bad_args(complaint))?;
    let given = range[0].clone();
    let (key, end) = keys.range(range)?;
    let (client, style) = context.open().await?;
    let response = client.role_revoke_permission(&role, Permission::range(key, end.clone())).await?;
    style.show(&Done { text: revoked(&role, &given, &end), response })
}

/// Names in front, then at least one key.
fn split<const NAMES: usize>(mut args: Vec<OsString>) -> Option<([String; NAMES], Vec<Bytes>)> {
    if args.len() <= NAMES {
        return None;
    }
    let range = args.split_off(NAMES).into_iter().map(into_bytes).collect();
    let names: Vec<String> = args.into_iter().map(|name| name.to_string_lossy().into_owned()).collect();
    Some((names.try_into().ok()?, range))
}

const OPEN_END: &[u8] = b"\0";

impl Keys {
    /// A key and where the range ends, empty for one key alone. The empty key stands for the smallest there is.
    fn range(&self, args: Vec<Bytes>) -> Result<(Bytes, Bytes), Failure> {
        let key = args[0].clone();
        let end = args.get(1).cloned();
        let open = || Bytes::from_static(OPEN_END);
        let conflict = |what: &str| Err(Failure::bad_args(what));
        match (self.prefix, self.from_key, end) {
            (true, true, _) if key.is_empty() => conflict("--from-key and --prefix flags are mutually exclusive"),
            (prefix, from_key, _) if key.is_empty() => {
                Ok((open(), if prefix || from_key { open() } else { Bytes::new() }))
            }
            (true, _, Some(_)) => conflict("unexpected endkey argument with --prefix flag"),
            (_, true, Some(_)) => conflict("unexpected endkey argument with --from-key flag"),
            (true, true, None) => conflict("--from-key and --prefix flags are mutually exclusive"),
            (true, false, None) => Ok((key.clone(), prefix_end(&key))),
            (false, true, None) => Ok((key, open())),
            (false, false, end) => Ok((key, end.unwrap_or_default())),
        }
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(false, false, &["k"] => Ok(("k".into(), "".into())))]
    #[test_case(false, false, &["k", "m"] => Ok(("k".into(), "m".into())))]
    #[test_case(true, false, &["k"] => Ok(("k".into(), "l".into())))]
    #[test_case(false, true, &["k"] => Ok(("k".into(), "\0".into())))]
    #[test_case(false, false, &[""] => Ok(("\0".into(), "".into())))]
    #[test_case(true, false, &["", "ignored"] => Ok(("\0".into(), "\0".into())))]
    #[test_case(false, true, &[""] => Ok(("\0".into(), "\0".into())))]
    #[test_case(true, true, &["k"] => Err("--from-key and --prefix flags are mutually exclusive".into()))]
    #[test_case(true, true, &[""] => Err("--from-key and --prefix flags are mutually exclusive".into()))]
    #[test_case(true, true, &["k", "m"] => Err("unexpected endkey argument with --prefix flag".into()))]
    #[test_case(false, true, &["k", "m"] => Err("unexpected endkey argument with --from-key flag".into()))]
    fn ranges(prefix: bool, from_key: bool, args: &[&'static str]) -> Result<(Bytes, Bytes), String> {
        let args = args.iter().map(|arg| Bytes::from_static(arg.as_bytes())).collect();
        Keys { prefix, from_key }.range(args).map_err(|failure| failure.text().to_owned())
    }
}
