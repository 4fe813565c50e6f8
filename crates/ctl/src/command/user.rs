//! `user`: who may log in, and the roles they have.

use cli::value;

use super::{only, two};
use crate::{
    context::Context,
    failure::Failure,
    password,
    print::{Done, RoleShown, UserShown, print, println},
};

/// User related commands
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct UserArgs {
    #[command(subcommand)]
    pub command: UserCommand,
}

#[derive(clap::Subcommand)]
pub(crate) enum UserCommand {
    /// Adds a new user
    #[command(after_help = "Example: lockgatectl user add alice")]
    Add {
        #[command(flatten)]
        entry: Entry,
        /// The password, in place of asking for it
        #[arg(long, default_value = "", hide_default_value = true, value_name = "PASSWORD")]
        new_user_password: String,
        /// A user who cannot log in by password, only by the common name of a certificate
        #[arg(long)]
        no_password: bool,
        /// The user's name, or name:password
        #[arg(value_name = "NAME")]
        args: Vec<String>,
    },
    /// Deletes a user
    #[command(after_help = "Example: lockgatectl user delete alice")]
    Delete {
        /// The user's name
        #[arg(value_name = "NAME")]
        args: Vec<String>,
    },
    /// Gets detailed information of a user
    #[command(after_help = "Example: lockgatectl user get alice --detail")]
    Get {
        /// Also the permissions of the user's roles
        #[arg(long)]
        detail: bool,
        /// The user's name
        #[arg(value_name = "NAME")]
        args: Vec<String>,
    },
    /// Lists all users
    #[command(after_help = "Example: lockgatectl user list")]
    List {
        #[arg(hide = true)]
        args: Vec<String>,
    },
    /// Changes password of user
    #[command(after_help = "Example: lockgatectl user passwd alice")]
    Passwd {
        #[command(flatten)]
        entry: Entry,
        /// The user's name
        #[arg(value_name = "NAME")]
        args: Vec<String>,
    },
    /// Grants a role to a user
    #[command(after_help = "Example: lockgatectl user grant-role alice operator")]
    GrantRole {
        /// The user's name and the role's
        #[arg(value_name = "NAME")]
        args: Vec<String>,
    },
    /// Revokes a role from a user
    #[command(after_help = "Example: lockgatectl user revoke-role alice operator")]
    RevokeRole {
        /// The user's name and the role's
        #[arg(value_name = "NAME")]
        args: Vec<String>,
    },
}

#[derive(clap::Args)]
pub(crate) struct Entry {
    /// Ask for the password twice; with false, take the first word of standard input
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", value_parser = value::boolean, value_name = "BOOL")]
    interactive: bool,
}

impl Entry {
    async fn password(&self, user: &str) -> Result<String, Failure> {
        if self.interactive { password::ask_twice(user).await } else { Ok(password::first_word()) }
    }
}

pub(crate) async fn run(context: &Context, command: UserCommand) -> Result<(), Failure> {
    match command {
        UserCommand::Add { entry, new_user_password, no_password, args } => {
            let arg = only(args, "user add command requires user name as its argument")?;
            let new = NewUser::read(arg, &entry, new_user_password, no_password).await?;
            add(context, new).await
        }
        UserCommand::Delete { args } => {
            let name = only(args, "user delete command requires user name as its argument")?;
            let (client, style) = context.open().await?;
            let response = client.user_delete(&name).await?;
            style.show(&Done { text: format!("User {name} deleted"), response })
        }
        UserCommand::Get { detail, args } => {
            get(context, only(args, "user get command requires user name as its argument")?, detail).await
        }
        UserCommand::List { args } if !args.is_empty() => {
            Err(Failure::bad_args("user list command requires no arguments"))
        }
        UserCommand::List { .. } => {
            let (client, style) = context.open().await?;
            style.show(&client.user_list().await?)
        }
        UserCommand::Passwd { entry, args } => {
            let name = only(args, "user passwd command requires user name as its argument")?;
            let password = entry.password(&name).await?;
            let (client, style) = context.open().await?;
            let response = client.user_change_password(&name, &password).await?;
            style.show(&Done { text: "Password updated".to_owned(), response })
        }
        UserCommand::GrantRole { args } => {
            let [user, role] = two(args, "user grant command requires user name and role name as its argument")?;
            let (client, style) = context.open().await?;
            let response = client.user_grant_role(&user, &role).await?;
            style.show(&Done { text: format!("Role {role} is granted to user {user}"), response })
        }
        UserCommand::RevokeRole { args } => {
            let [user, role] = two(args, "user revoke-role requires user name and role name as its argument")?;
            let (client, style) = context.open().await?;
            let response = client.user_revoke_role(&user, &role).await?;
            style.show(&Done { text: format!("Role {role} is revoked from user {user}"), response })
        }
    }
}

struct NewUser {
    name: String,
    /// None for a user without.
    password: Option<String>,
}

impl NewUser {
    /// A password from a flag leaves a colon to the name.
    async fn read(arg: String, entry: &Entry, flag: String, no_password: bool) -> Result<NewUser, Failure> {
        if no_password {
            return Ok(NewUser { name: arg, password: None });
        }
        if !flag.is_empty() {
            return Ok(NewUser { name: arg, password: Some(flag) });
        }
        match arg.split_once(':') {
            Some(("", _)) => Err(Failure::bad_args("empty user name is not allowed")),
            Some((name, password)) => Ok(NewUser { name: name.to_owned(), password: Some(password.to_owned()) }),
            None => Ok(NewUser { password: Some(entry.password(&arg).await?), name: arg }),
        }
    }
}

async fn add(context: &Context, NewUser { name, password }: NewUser) -> Result<(), Failure> {
    let (client, style) = context.open().await?;
    let response = match password {
        Some(password) => client.user_add(&name, &password).await?,
        None => client.user_add_no_password(&name).await?,
    };
    style.show(&Done { text: format!("User {name} created"), response })
}

async fn get(context: &Context, name: String, detail: bool) -> Result<(), Failure> {
    let (client, style) = context.open().await?;
    let response = client.user_get(&name).await?;
    if !detail {
        return style.show(&UserShown { name, response });
    }
    println(&format!("User: {name}"))?;
    for role in response.roles {
        print(b"\n")?;
        let response = client.role_get(&role).await?;
        style.show(&RoleShown { role, response })?;
    }
    Ok(())
}
